"""The program's first process, with which its container begins and ends.

It is there before the program is: first it is the runtime, which prepares the container from within
and then becomes the program. Nothing but its name tells the two apart.

A cluster tells times in whole seconds, and not at all what a program has used. The kernel wakes
whoever holds a process in the moment of its end, and keeps its figures until its parent has taken
note: so they are read first of all then. If that was too late, those of the look before count.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from typing import Final

from anubis.adapters.engine.kubernetes.recorder.processes import Process
from anubis.adapters.engine.process.guardian import tree

_RUNTIMES: Final = (b"runc:[", b"crun)", b"youki:[")
"""How the names of runtimes begin while they prepare a container."""


class FirstProcess:
    """One that was there a moment ago."""

    __slots__ = ("_figures", "ended_ns", "handle", "is_runtime", "last")

    def __init__(self, process: Process) -> None:
        self.last = process  #: as it was when last seen
        self.is_runtime = False  #: whether it was not the program yet when last seen
        self.ended_ns: int | None = None
        self.handle = -1  #: can be read when the process has ended; -1: this kernel has no such
        self._figures = -1
        with contextlib.suppress(OSError):
            self._figures = os.open(f"/proc/{process.number}/stat", os.O_RDONLY | os.O_CLOEXEC)
            self.handle = os.pidfd_open(process.number)
        self.look()

    def look(self) -> None:
        """Read its figures again, if it is still there."""
        with contextlib.suppress(OSError):
            line = os.pread(self._figures, 4096, 0)
            self.last = Process(self.last.number, tree.fields(line))
            self.is_runtime = line[line.index(b"(") + 1 :].startswith(_RUNTIMES)

    def note_end(self) -> None:
        """It has ended, right now."""
        self.ended_ns = time.time_ns()
        self.look()

    def with_others(self, processes: Sequence[Process]) -> list[Process]:
        """These, and itself as it was last seen."""
        return [*(one for one in processes if one.number != self.last.number), self.last]


def first(processes: Sequence[Process]) -> Process:
    """The one that was there before the others."""
    return min(processes, key=lambda one: (int(one.fields[tree.START_TICKS]), one.number))
