"""A recorder as a real process, beside a real program, in folders of a test instead of a pod.

Run as a program it is the recorder, which counts the processes of one session as the program's.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from tests.unit.engine_kubernetes.node_logs import NodeLog

from anubis.adapters.engine.kubernetes import recording
from anubis.adapters.engine.kubernetes.recorder import stopping
from anubis.adapters.engine.kubernetes.recorder.processes import Program
from anubis.adapters.engine.kubernetes.recorder.reading import Usage
from anubis.adapters.engine.kubernetes.recorder.running import Recorder
from anubis.adapters.engine.kubernetes.recorder.specifying import Places, Spec
from anubis.adapters.engine.kubernetes.recording import Frame, Kind
from anubis.adapters.engine.process.guardian import tree

ROOT = pathlib.Path(__file__).parents[3]
MODULE = "tests.unit.engine_kubernetes.recorder_process"
PATIENCE_SECONDS = 30.0


class Beside:
    """A program, its log, and its recorder."""

    def __init__(self, root: pathlib.Path) -> None:
        self.places = Places(
            record=str(root / "record"), emit=str(root / "emit"), logs=str(root / "benchmark")
        )
        for place in (self.places.record, self.places.emit):
            pathlib.Path(place).mkdir()
        self.log = NodeLog(root / "benchmark")
        self.fifo = root / "emit" / "fifo"
        self._session = root / "session"
        self._root = root
        self._started: list[subprocess.Popen[bytes]] = []

    def start_program(self, *command: str) -> subprocess.Popen[bytes]:
        """Begin what is recorded."""
        program = subprocess.Popen(command, start_new_session=True)
        self._started.append(program)
        unfinished = self._root / "session.new"
        unfinished.write_text(str(program.pid))
        unfinished.rename(self._session)
        return program

    def start_recorder(self, **told: object) -> subprocess.Popen[bytes]:
        """Begin to record."""
        limits = {"unit": "unit", "running_seconds": 60, "grace_seconds": 5}
        more = {"output_bytes": 1 << 30, "drain_seconds": 60, **told}
        words = (str(self._session), json.dumps(self.places), json.dumps({**limits, **more}))
        held = ("env", "--block-signal=TERM")  # as the manifests have it
        recorder = subprocess.Popen([*held, sys.executable, "-m", MODULE, *words], cwd=ROOT)
        self._started.append(recorder)
        while not _holds(recorder.pid):  # a program takes longer to start
            time.sleep(0.001)
        return recorder

    def journal(self) -> list[Frame]:
        """All frames there are."""
        path = pathlib.Path(self.places.record, "journal")
        return recording.frames(path.read_bytes())[0] if path.exists() else []

    def until(self, kind: Kind, content: bytes = b"") -> list[Frame]:
        """All frames, once there is one of a kind, with something in it."""
        give_up = time.monotonic() + PATIENCE_SECONDS
        while True:
            found = self.journal()
            if any(frame.kind == kind and content in frame.payload for frame in found):
                return found
            assert time.monotonic() < give_up, found
            time.sleep(0.02)

    def sealed(self, recorder: subprocess.Popen[bytes]) -> list[Frame]:
        """Say that the program has ended, as the kubelet does, and let the recorder go."""
        recorder.send_signal(signal.SIGTERM)
        found = self.until(Kind.SEALED)
        stopping.release(self.places.record)
        assert recorder.wait(PATIENCE_SECONDS) == 0
        return found

    def close(self) -> None:
        """Leave nothing running."""
        for one in self._started:
            if one.poll() is None:
                one.kill()
            one.wait()


def _holds(process: int) -> bool:
    """Whether it holds the signal back, or hears it already."""
    lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigBlk", "SigCgt"))]
    return any(mask >> (signal.SIGTERM - 1) & 1 for mask in masks)


def output(frames: Sequence[Frame], kind: Kind) -> bytes:
    """All bytes of one kind."""
    return b"".join(frame.data for frame in frames if frame.kind == kind)


def told(frames: Sequence[Frame], kind: Kind) -> list[dict[str, object]]:
    """The content of all frames of a kind with JSON in them."""
    return [frame.json() for frame in frames if frame.kind == kind]


def main(session: str, places: str, text: str) -> None:
    """Be the recorder."""

    def belongs(process: int) -> bool:
        fields = tree.stat(process)
        if fields is None or not pathlib.Path(session).exists():
            return False
        return fields[tree.SESSION].decode() == pathlib.Path(session).read_text()

    spec = Spec.parse(text)._replace(places=Places(*json.loads(places)))
    Recorder(spec, Program(belongs), Usage(holder=os.getpid())).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
