"""Which processes of the pod are the program's.

All containers of the pod share their process ids. The first process holds the pod together; others
are ours, among them commands that the engine runs in our container; and people or operators may put
containers of their own into the pod. None of those may be measured, nor signaled. Which container a
process is in can be read from its mounts without any privilege: the kubelet mounts a file for last
words into each, from a folder with the container's name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from anubis.adapters.engine.process.guardian import tree

BENCHMARK: Final = "benchmark"
_HOLDER: Final = 1  #: the process that holds the pod together
_LAST_WORDS: Final = b"/dev/termination-log"
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    """One of the program's."""

    number: int
    fields: list[bytes]  #: of ``/proc/<number>/stat``; see ``guardian.tree``

    @property
    def is_running(self) -> bool:
        """Whether it is more than an entry that waits for its parent."""
        return self.fields[tree.STATE] not in b"ZX"

    @property
    def age(self) -> float:
        """Seconds since it began."""
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        return max(0.0, now - int(self.fields[tree.START_TICKS]) / _TICKS)


class Program:
    """The processes of the measured container, as they come and go."""

    def __init__(self, belongs: Callable[[int], bool] | None = None) -> None:
        self._belongs = belongs or _Container().belongs
        self._known: dict[tuple[int, bytes], bool] = {}

    def processes(self) -> list[Process]:
        """All there are now."""
        found: list[Process] = []
        known: dict[tuple[int, bytes], bool] = {}
        for name in os.listdir("/proc"):  # noqa: PTH208 - once a second, beside every measurement
            if not name.isdigit() or (fields := tree.stat(int(name))) is None:
                continue
            key = (int(name), fields[tree.START_TICKS])
            known[key] = self._known.get(key) or self._belongs(key[0])
            if known[key]:
                found.append(Process(key[0], fields))
        self._known = known
        return found


class _Container:
    """Tells the program's processes by the container they are in."""

    def __init__(self) -> None:
        self._own = _container("self")
        self._group = _group("self")

    def belongs(self, process: int) -> bool:
        if process in (_HOLDER, os.getpid()):
            return False
        try:
            name = _container(str(process))
            if name:
                return name == BENCHMARK
            # Somebody's pod has no such mount, or a process has mounts of its own. What is not
            # ours is the program's then.
            return not self._own or _group(str(process)) != self._group
        except OSError:  # it is gone
            return False


def _container(process: str) -> str:
    """The name of the container that a process is in; empty if it is in none."""
    for line in _read(f"/proc/{process}/mountinfo").splitlines():
        words = line.split(b" ", 5)
        if len(words) > 5 and words[4] == _LAST_WORDS:
            parts = words[3].decode("utf-8", "replace").split("/")
            if "containers" in parts[:-1]:
                return parts[parts.index("containers") + 1]
    return ""


def _group(process: str) -> bytes:
    return _read(f"/proc/{process}/cgroup")


def _read(path: str) -> bytes:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC), "rb") as file:
        return file.read()
