"""What a journal says of an earlier recorder of the same pod, which was killed."""

from __future__ import annotations

import contextlib

from anubis.adapters.engine.kubernetes import recording
from anubis.adapters.engine.kubernetes.recorder.cri_log import Place
from anubis.adapters.engine.kubernetes.recording import Damaged, Frame, Kind, Reading


class Past:
    """Where it stood. All at the beginning, if there was none."""

    def __init__(self) -> None:
        self.place: Place | None = None
        self.kept = dict.fromkeys((Kind.STDOUT, Kind.STDERR, Kind.EMITTED), 0)  #: bytes
        self.reading: Reading | None = None
        self.has_begun = False
        self.is_stopped = False
        self.is_sealed = False
        self.exists = False

    def note(self, frame: Frame) -> None:
        """Take in one frame, oldest first."""
        self.exists = True
        if frame.kind in (Kind.STDOUT, Kind.STDERR):
            self.kept[Kind(frame.kind)] += len(frame.data)
            if self.place is not None:
                self.place = self.place._replace(position=frame.position)
        elif frame.kind == Kind.EMITTED:
            self.kept[Kind.EMITTED] += len(frame.payload)
        elif frame.kind == Kind.FILE:
            self.place = Place.unpacked(frame.json())
        elif frame.kind == Kind.READING:
            with contextlib.suppress(TypeError):
                self.reading = Reading(**frame.json())  # type: ignore[arg-type] # ours, or older
        elif frame.kind == Kind.ENDED:
            known = self.reading or Reading(0.0, 0, 0, 0, 0, 0)
            self.reading = known._replace(cpu_seconds=float(str(frame.json()["cpu_seconds"])))
        else:
            self.has_begun = self.has_begun or frame.kind == Kind.BEGAN
            self.is_stopped = self.is_stopped or frame.kind == Kind.STOPPED
            self.is_sealed = self.is_sealed or frame.kind == Kind.SEALED


def recovered(path: str) -> Past:
    """Read a journal to its end, and mend that end. A damaged one counts up to the damage."""
    past = Past()
    for frame in recording.recover(path, mends=True):
        with contextlib.suppress(Damaged, KeyError, ValueError):
            past.note(frame)
    return past
