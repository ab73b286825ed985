"""The background runtime of a home: at most one, started by whoever needs it, found by its lock.

The lock is an ``flock``: the kernel lets go of it when its holder dies, however it dies, so there
is no stale state to clean. A command first stores its run and then looks at the lock; the runtime
first lets go of the lock and then looks for runs. Whatever the order, one of them sees the other.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from anubis.domain.errors import EngineUnavailable


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

    def release(self) -> None:
        """Let go of it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def is_alive(lock: Path) -> bool:
    """Whether a runtime holds the lock. A shared lock is tried, so askers do not meet."""
    try:
        file = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def start(command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    """Start the runtime as a process of its own, which outlives us and our terminal."""
    try:
        with log.open("ab") as sink:
            subprocess.Popen(
                command,
                env=dict(environment),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
    except OSError as error:
        raise EngineUnavailable(f"the background runtime cannot be started: {error}") from error
