"""Who is the runtime of a home: whoever holds its lock.

The lock is an ``flock``: the kernel lets go of it when its holder dies, however it dies, so there
is no stale state to clean. Standard library only and quick to import: a runtime that is not
needed must find out before it has cost anything.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class RuntimeLock:
    """The right to be the runtime of a home. Held until ``release`` or the end of the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def acquire(self) -> bool:
        """Take the lock if nobody has it."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        self._file = file
        return True

    def take_over(self, file: int) -> None:
        """Hold the lock that whoever started us took, and left to us as a descriptor."""
        os.set_inheritable(file, False)
        self._file = file

    @property
    def descriptor(self) -> int:
        """What holds the lock, to be left to a new process."""
        assert self._file is not None, "only who holds the lock can leave it"
        return self._file

    def release(self) -> None:
        """Let go of it. A process that it was left to still holds it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def is_held(path: Path) -> bool:
    """Whether somebody holds a lock. Looks without touching it.

    Trying the lock to see whether it is free would, for that moment, keep it from somebody.
    """
    try:
        inode = str(path.stat().st_ino)
    except OSError:
        return False
    locks = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return any(lock[1] == "FLOCK" and lock[5].rpartition(":")[2] == inode for lock in locks)
