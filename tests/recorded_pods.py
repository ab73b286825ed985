"""Pods with a recorder, written by hand: what the recorder does is seen without the engine."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tests import kubectl, own_image

from anubis.adapters.engine.kubernetes import recording
from anubis.adapters.engine.kubernetes.recording import Frame, Kind

MODULE = "anubis.adapters.engine.kubernetes.recorder"
LIMITS: Mapping[str, object] = {
    "unit": "benchmark",
    "running_seconds": 600.0,
    "grace_seconds": 5.0,
    "output_bytes": 1 << 40,
    "drain_seconds": 600.0,
}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A pod."""

    name: str
    image: str
    command: Sequence[str]
    told: Mapping[str, object] = dataclasses.field(default_factory=dict)  #: beside ``LIMITS``
    container: Mapping[str, object] = dataclasses.field(default_factory=dict)  #: of the program
    others: Sequence[Mapping[str, object]] = ()  #: containers beside it

    def manifest(self) -> dict[str, object]:
        """As the engine would write it."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name},
            "spec": {
                "restartPolicy": "Never",
                "shareProcessNamespace": True,
                "terminationGracePeriodSeconds": 600,
                "automountServiceAccountToken": False,
                "initContainers": [_recorder({**LIMITS, **self.told})],
                "containers": [self._program(), *self.others],
                "volumes": [
                    {"name": "record", "emptyDir": {}},
                    {"name": "emit", "emptyDir": {}},
                    {"name": "output", "hostPath": {"path": "/var/log/pods"}},
                ],
            },
        }

    def _program(self) -> dict[str, object]:
        return {
            "name": "benchmark",
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": list(self.command),
            "env": [
                {"name": "BENCHMARK_AI", "value": "fifo"},
                {"name": "BENCHMARK_AI_FIFO_FILEPATH", "value": "/tmp/benchmark-ai/fifo"},
            ],
            "volumeMounts": [{"name": "emit", "mountPath": "/tmp/benchmark-ai"}],
            **self.container,
        }


def _recorder(told: Mapping[str, object]) -> dict[str, object]:
    fields = {"POD_NAMESPACE": "namespace", "POD_NAME": "name", "POD_UID": "uid"}
    return {
        "name": "recorder",
        "image": own_image.NAME,
        "imagePullPolicy": "IfNotPresent",
        "restartPolicy": "Always",
        "command": ["env", "--block-signal=TERM", "python3", "-m", MODULE],
        "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False},
        "env": [
            *(
                {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{field}"}}}
                for name, field in fields.items()
            ),
            {"name": "ANUBIS_RECORDER", "value": json.dumps(told)},
        ],
        "volumeMounts": [
            {"name": "record", "mountPath": "/var/lib/anubis-record"},
            {"name": "emit", "mountPath": "/tmp/benchmark-ai"},
            {
                "name": "output",
                "mountPath": "/var/log/anubis-pod",
                "readOnly": True,
                "subPathExpr": "$(POD_NAMESPACE)_$(POD_NAME)_$(POD_UID)",
            },
        ],
    }


class Pod:
    """One that was started."""

    def __init__(self, space: kubectl.Space, wanted: Wanted) -> None:
        self._space = space
        self.name = wanted.name
        space.ask("create", "-f", "-", stdin=json.dumps(wanted.manifest()))

    def command(self, *words: str) -> None:
        """Have a command of the recorder run, as the engine does."""
        self._space.ask("exec", self.name, "-c", "recorder", "--", "python3", "-m", MODULE, *words)

    def journal(self) -> list[Frame]:
        """All frames there are now; none while there is no recorder."""
        words = ("exec", self.name, "-c", "recorder", "--", "cat", recording.JOURNAL)
        done = subprocess.run(
            [
                *(kubectl.program(), "--kubeconfig", str(self._space.kubeconfig)),
                *("--namespace", self._space.name, *words),
            ],
            capture_output=True,
        )
        return recording.frames(done.stdout)[0] if done.returncode == 0 else []

    def sealed(self, seconds: float = kubectl.PATIENCE) -> list[Frame]:
        """All frames, once there will be no more."""
        give_up = time.monotonic() + seconds
        while True:
            found = self.journal()
            if found and found[-1].kind == Kind.SEALED:
                return found
            assert time.monotonic() < give_up, f"{self.status()}\n{self.words()}\n{found[-5:]}"
            time.sleep(0.5)

    def until(self, kind: Kind, content: bytes = b"") -> list[Frame]:
        """All frames, once there is one of a kind, with something in it."""
        give_up = time.monotonic() + kubectl.PATIENCE
        while True:
            found = self.journal()
            if any(frame.kind == kind and content in frame.payload for frame in found):
                return found
            assert time.monotonic() < give_up, f"{self.status()}\n{self.words()}\n{found[-5:]}"
            time.sleep(0.2)

    def status(self) -> Any:
        """What the cluster says of it."""
        return self._space.get("pod", self.name)["status"]

    def ended(self) -> Any:
        """How its program ended."""
        [container] = [
            one for one in self.status()["containerStatuses"] if one["name"] == "benchmark"
        ]
        return container["state"]["terminated"]

    def is_over(self) -> bool:
        """Whether its program has ended."""
        return any(
            "terminated" in one["state"]
            for one in self.status().get("containerStatuses", ())
            if one["name"] == "benchmark"
        )

    def recorder(self) -> Any:
        """What the cluster says of the recorder."""
        return self.status()["initContainerStatuses"][-1]

    def words(self) -> str:
        """What the recorder complained about."""
        return self._space.kubectl("logs", self.name, "-c", "recorder").stdout


def output(frames: Sequence[Frame], kind: Kind) -> bytes:
    """All bytes of one kind."""
    return b"".join(frame.data for frame in frames if frame.kind == kind)


def told(frames: Sequence[Frame], kind: Kind) -> list[dict[str, object]]:
    """The content of all frames of a kind with JSON in them."""
    return [frame.json() for frame in frames if frame.kind == kind]
