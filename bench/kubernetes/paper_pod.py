"""A pod on a node that exists only on paper: what its kubelet would say, and what was recorded.

The steps and their fields are those of a real kubelet for a pod that waits, runs and ends well. A
pod with a recorder goes on after its program has ended, until somebody deletes it.
"""

from __future__ import annotations

import asyncio
import enum
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from anubis.adapters.engine.kubernetes import recording
from anubis.adapters.engine.kubernetes.recording import Kind, Reading, Totals

LINE = b"a line of output\n"
READING = Reading(
    cpu_seconds=0.01,
    memory_bytes=1 << 20,
    read_bytes=0,
    written_bytes=0,
    threads=1,
    processes=1,
)


class Step(enum.IntEnum):
    """How far a pod is."""

    PREPARING = 1  #: volumes and network are there
    RECORDING = 2  #: what comes before the program runs, or is done
    RUNNING = 3
    ENDED = 4  #: its program; with it the pod, if it has no recorder
    OVER = 5  #: the recorder too


class Journal:
    """What the recorder of a pod writes, and who waits for more of it."""

    def __init__(self) -> None:
        self.content = b""
        self.is_closed = False
        self._grown = asyncio.Event()

    def append(self, *frames: bytes) -> None:
        """Write whole frames."""
        self.content += b"".join(frames)
        self._ring()

    def close(self) -> None:
        """Its container is gone."""
        self.is_closed = True
        self._ring()

    def next(self) -> asyncio.Event:
        """Set when there is more. Take it before you look."""
        return self._grown

    def _ring(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()


class PaperPod:
    """One pod, and when each of its steps was."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.name = str(found["metadata"]["name"])
        self.uid = str(found["metadata"]["uid"])
        self.journal = Journal()
        self._at: dict[Step, str] = {}
        self._before: Sequence[Mapping[str, Any]] = found["spec"].get("initContainers") or ()
        self._programs: Sequence[Mapping[str, Any]] = found["spec"]["containers"]

    @property
    def is_recorded(self) -> bool:
        """Whether something of it goes on after its program."""
        return any(_is_sidecar(one) for one in self._before)

    def record(self, step: Step) -> None:
        """What the recorder writes when a pod is so far."""
        if step is Step.RUNNING:
            self.journal.append(
                recording.packed_json(Kind.BEGAN, {}),
                recording.packed_json(Kind.READING, READING),
            )
        elif step is Step.ENDED:
            totals = Totals(
                stdout_bytes=len(LINE),
                stderr_bytes=0,
                emitted_bytes=0,
                cpu_seconds=READING.cpu_seconds,
                peak_memory_bytes=READING.memory_bytes,
                is_whole=True,
            )
            self.journal.append(
                recording.packed_output(Kind.STDOUT, len(LINE), LINE, time.time_ns()),
                recording.packed_json(Kind.READING, READING),
                recording.packed_json(Kind.ENDED, {"cpu_seconds": READING.cpu_seconds}),
                recording.packed_json(Kind.SEALED, totals),
            )

    def status(self, step: Step) -> Mapping[str, object]:
        """What its kubelet says of it at a step."""
        self._at.setdefault(step, _now())
        is_over = step is Step.OVER or (step is Step.ENDED and not self.is_recorded)
        phases = {Step.PREPARING: "Pending", Step.RECORDING: "Pending"}
        return {
            "phase": "Succeeded" if is_over else phases.get(step, "Running"),
            "startTime": self._at[min(self._at)],
            "conditions": self._conditions(step),
            "initContainerStatuses": [self._preceding(one, step) for one in self._before],
            "containerStatuses": [self._program(one, step) for one in self._programs],
        }

    def _conditions(self, step: Step) -> list[Mapping[str, object]]:
        holds = {
            "PodReadyToStartContainers": step < Step.OVER,
            "Initialized": step >= Step.RUNNING,
            "ContainersReady": step is Step.RUNNING,
            "Ready": step is Step.RUNNING,
        }
        at = self._at[step]
        return [
            {"type": name, "status": str(so), "lastTransitionTime": at}
            for name, so in holds.items()
        ]

    def _preceding(self, one: Mapping[str, Any], step: Step) -> Mapping[str, object]:
        if step < Step.RECORDING:
            return _status(one, {"waiting": {"reason": "PodInitializing"}})
        began = self._at[Step.RECORDING]
        if _is_sidecar(one) and step < Step.OVER:
            return _status(one, {"running": {"startedAt": began}}, is_up=True)
        return _status(one, _terminated(began, self._at[step]))

    def _program(self, one: Mapping[str, Any], step: Step) -> Mapping[str, object]:
        if step < Step.RUNNING:
            return _status(one, {"waiting": {"reason": "PodInitializing"}})
        began = self._at.get(Step.RUNNING, self._at[step])
        if step is Step.RUNNING:
            return _status(one, {"running": {"startedAt": began}}, is_up=True)
        return _status(one, _terminated(began, self._at.get(Step.ENDED, self._at[step])))


def _is_sidecar(container: Mapping[str, Any]) -> bool:
    return container.get("restartPolicy") == "Always"


def _terminated(began: str, ended: str) -> Mapping[str, object]:
    how = {"exitCode": 0, "reason": "Completed", "startedAt": began, "finishedAt": ended}
    return {"terminated": how}


def _status(
    container: Mapping[str, Any], state: Mapping[str, object], *, is_up: bool = False
) -> Mapping[str, object]:
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": f"paper://{container['image']}",
        "ready": is_up,
        "started": is_up,
        "restartCount": 0,
        "state": state,
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
