"""Locks between processes. The kernel lets go of an ``flock`` when its holder dies, however.

A lock's file is removed by who lets go of it, so that they do not pile up. Whoever got the lock of
a file that is no longer at its path holds nothing, and tries again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


def try_lock(path: Path) -> int | None:
    """Take a lock that nobody has; None if somebody does."""
    file = os.open(path, FLAGS, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(path, file):
            return file
    except BlockingIOError:
        pass
    os.close(file)
    return None


def let_go(path: Path, file: int) -> None:
    """Give a lock back, and take its file away."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    os.close(file)


def is_held(path: Path) -> bool:
    """Whether somebody has a lock."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


@contextlib.contextmanager
def held(path: Path, *, shared: bool) -> Iterator[None]:
    """Hold a lock that is never removed, for a moment; waits for others to let go."""
    file = os.open(path, FLAGS, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _is_at(path: Path, file: int) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    ours = os.fstat(file)
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
