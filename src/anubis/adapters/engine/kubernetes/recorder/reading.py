"""What the program uses, once a second, from ``/proc``.

The kernel adds the times of processes that ended to whoever waited for them: their parent, or the
holder of the pod for those that lost theirs. So short-lived processes count too. Only what the
program's first process used after the last look is not seen.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence

from anubis.adapters.engine.kubernetes.recorder.processes import Process
from anubis.adapters.engine.kubernetes.recording import Reading
from anubis.adapters.engine.process.guardian import tree


class Usage:
    """Totals that never shrink, from the first look on."""

    def __init__(self, holder: int = 1) -> None:
        self._holder = holder  #: who waits for processes of the program that lost their parent
        self._page = resource.getpagesize()
        self._tick = 1 / os.sysconf("SC_CLK_TCK")
        self.last = Reading(0.0, 0, 0, 0, 0, 0)
        self.peak = 0  #: resident bytes of the largest single process, at its largest

    def resume(self, last: Reading, peak: int) -> None:
        """Go on after a recorder that was killed."""
        self.last = last
        self.peak = max(self.peak, peak)

    def sample(self, processes: Sequence[Process]) -> Reading:
        """What all of them use now."""
        running = [one for one in processes if one.is_running]
        ticks = sum(_ticks(one) for one in processes)
        ticks += _reaped_ticks(self._holder)
        read = written = 0
        for one in processes:
            more_read, more_written = tree.storage_io(one.number)
            read, written = read + more_read, written + more_written
        self._note_peak(running)
        self.last = Reading(
            cpu_seconds=max(self.last.cpu_seconds, round(ticks * self._tick, 2)),
            memory_bytes=sum(_pages(one) for one in running) * self._page,
            read_bytes=max(self.last.read_bytes, read),
            written_bytes=max(self.last.written_bytes, written),
            threads=sum(int(one.fields[tree.THREADS]) for one in running),
            processes=len(running),
        )
        return self.last

    def _note_peak(self, running: Sequence[Process]) -> None:
        if running:
            largest = max(running, key=_pages)
            now = _pages(largest) * self._page
            self.peak = max(self.peak, now, _peak_bytes(largest.number))


def _ticks(process: Process) -> int:
    return sum(map(int, process.fields[tree.USER : tree.CHILDREN_SYSTEM + 1]))


def _pages(process: Process) -> int:
    return int(process.fields[tree.RESIDENT_PAGES])


def _reaped_ticks(process: int) -> int:
    """The time of all that ended and that a process waited for."""
    fields = tree.stat(process)
    if fields is None:
        return 0
    return int(fields[tree.CHILDREN_USER]) + int(fields[tree.CHILDREN_SYSTEM])


def _peak_bytes(process: int) -> int:
    """The most that a process ever had in memory, as the kernel remembers it; 0 if it is gone."""
    try:
        with os.fdopen(
            os.open(f"/proc/{process}/status", os.O_RDONLY | os.O_CLOEXEC), "rb"
        ) as file:
            for line in file:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
