"""The process tree below a shim, read from /proc: who is in it, what it uses, and its end.

Direct reads cost a tenth of a general library, which looks at every process of the machine to
find the children of one.
"""
# pathlib would cost a zygote 5 ms at its start, and each call ten times its time.
# ruff: noqa: PTH110, PTH208

from __future__ import annotations

import contextlib
import functools
import os
import resource
import signal
from collections.abc import Iterator

_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
"""What /proc answers when a process ends between two reads, or is not ours to look at."""

STATE, PARENT, SESSION = 0, 1, 3
USER, SYSTEM, CHILDREN_USER, CHILDREN_SYSTEM = 11, 12, 13, 14
THREADS, START_TICKS, RESIDENT_PAGES = 17, 19, 21
"""Positions in ``stat`` after the name; proc(5) counts from 1 and includes two more before."""


def _read(path: str, most: int = 4096) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)


def _read_all(path: str) -> bytes:
    """For lists, which the kernel gives a page at a time."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC), "rb") as file:
        return file.read()


def stat(process: int) -> list[bytes] | None:
    """The fields of ``/proc/<process>/stat`` after the name, None when it is gone."""
    try:
        line = _read(f"/proc/{process}/stat")
    except _GONE:
        return None
    return fields(line)


def fields(line: bytes) -> list[bytes]:
    """The fields of such a line after the name, which may hold anything."""
    return line[line.rindex(b")") + 2 :].split()


def start_ticks(process: int) -> int:
    """When a process began, in clock ticks since boot; 0 when it is gone."""
    fields = stat(process)
    return int(fields[START_TICKS]) if fields else 0


def ticks_at(seconds: float) -> int:
    """A time since 1970 in clock ticks since boot, to the second; negative before the boot."""
    boot = next(line for line in _read("/proc/stat", 1 << 20).split(b"\n") if line[:5] == b"btime")
    return int((seconds - int(boot.split()[1])) * os.sysconf("SC_CLK_TCK"))


@functools.cache
def _kernel_lists_children() -> bool:
    """Some sandboxes' kernels do not; then every process must be asked for its parent."""
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def children(process: int) -> list[int]:
    """Direct children, also those of threads other than the first."""
    if not _kernel_lists_children():
        return _parents().get(process, [])
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{process}/task"):
            with contextlib.suppress(*_GONE):
                path = f"/proc/{process}/task/{task}/children"
                found.extend(map(int, _read_all(path).split()))
    except _GONE:
        return found
    return found


def _parents() -> dict[int, list[int]]:
    """The children of every process of the machine."""
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := stat(int(name))):
            found.setdefault(int(fields[PARENT]), []).append(int(name))
    return found


def descendants(process: int) -> Iterator[int]:
    """Everything below a process, parents first."""
    pending = children(process)
    while pending:
        child = pending.pop()
        yield child
        pending.extend(children(child))


def running_below(process: int) -> list[int]:
    """Descendants that have not ended; those that only wait to be reaped do not count."""
    return [child for child in descendants(process) if is_running(child)]


def is_running(process: int) -> bool:
    """Whether a process exists and is more than an entry that waits for its parent."""
    fields = stat(process)
    return fields is not None and fields[STATE] not in b"ZX"


def send(signal_number: int, processes: list[int]) -> None:
    """Signal each; who is gone or not ours is passed over."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal_number)


def ask_to_end(processes: list[int]) -> None:
    """SIGTERM, and SIGCONT so that a stopped process can hear it."""
    send(signal.SIGTERM, processes)
    send(signal.SIGCONT, processes)


def storage_io(process: int) -> tuple[int, int]:
    """Bytes a process and its reaped children read from and wrote to storage."""
    try:
        lines = _read(f"/proc/{process}/io").split()
    except _GONE:
        return 0, 0
    return int(lines[9]), int(lines[11])  # read_bytes and write_bytes


class Usage:
    """What the tree uses, kept up from the start so that processes that ended still count."""

    __slots__ = ("_page", "_tick", "ended_io", "largest", "last")

    def __init__(self) -> None:
        self._page = resource.getpagesize()
        self._tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        self.ended_io = (0, 0)
        self.largest = 0  #: resident bytes of the largest single process seen
        self.last = (0, 0, 0, 0, 0, 0)

    def reap(self) -> tuple[int, int] | None:
        """Take leave of one child that ended: its process id and wait status.

        Raises ChildProcessError when there are no children, dead or alive, any more.
        """
        child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if child is None:
            return None
        # An ended process still tells its I/O until it is reaped.
        read, written = storage_io(child.si_pid)
        self.ended_io = (self.ended_io[0] + read, self.ended_io[1] + written)
        return os.waitpid(child.si_pid, 0)

    def sample(self, root: int) -> tuple[int, int, int, int, int, int]:
        """CPU ns, resident bytes, read, written, threads, processes: of all below ``root``.

        No processes means that it is over and the gauges mean nothing.
        """
        ticks = resident = threads = processes = 0
        read, written = self.ended_io
        for process in descendants(root):
            fields = stat(process)
            if fields is None:
                continue
            ticks += sum(map(int, fields[USER : CHILDREN_SYSTEM + 1]))
            process_read, process_written = storage_io(process)
            read += process_read
            written += process_written
            if fields[STATE] in b"ZX":  # it waits to be reaped: its totals count, it does not
                continue
            size = int(fields[RESIDENT_PAGES]) * self._page
            self.largest = max(self.largest, size)
            resident += size
            threads += int(fields[THREADS])
            processes += 1
        ns = ticks * self._tick + int(reaped_cpu_seconds() * 1e9)
        # Rounding to ticks must not make a total shrink when a process ends.
        totals = (max(ns, self.last[0]), max(read, self.last[2]), max(written, self.last[3]))
        self.last = (totals[0], resident, totals[1], totals[2], threads, processes)
        return self.last

    def close(self) -> tuple[int, int, int, int, int, int]:
        """The last reading: final totals; the rest stays as it was while the tree lived."""
        _, resident, read, written, threads, processes = self.last
        read, written = max(read, self.ended_io[0]), max(written, self.ended_io[1])
        ns = max(self.last[0], int(reaped_cpu_seconds() * 1e9))
        return ns, resident, read, written, threads, processes


def reaped_cpu_seconds() -> float:
    """CPU time of all descendants that were reaped."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def reaped_peak_bytes() -> int:
    """Largest resident size of a reaped descendant (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def own_peak_bytes() -> int:
    """Our own: a forked child starts with it, so a peak not above it says nothing."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
