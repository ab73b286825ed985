"""Start the background runtime of a home, unless there is one.

A command first stores its run and then tries the lock; the runtime first lets go of the lock and
then looks for runs. Whatever the order, one of them sees the other. Who gets the lock leaves it to
the process it starts: however many commands find no runtime at the same moment, one is started.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from anubis.domain.errors import EngineUnavailable
from anubis.runtime.locking import RuntimeLock

LOCK_OPTION = "--lock"
LOCK_DESCRIPTOR = 3
"""How a runtime is told that it was started with the lock, and where it finds it."""


QUICK_END = 5.0
"""Seconds. A runtime that is gone so soon after its start did not leave for want of work."""

MOST_QUICK_ENDS = 4
"""So many in a row, and the next would end so too."""

_LAST_WORDS = 4096


class Patience:
    """Whoever waits for a run starts the runtime again when it was killed, but not for ever one
    that cannot live. That one says why in its log; who is killed has no last words.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._started_at = -math.inf
        self._log_bytes = 0
        self._quick_ends = 0

    def note_start(self, now: float) -> None:
        """A runtime was started. Raises EngineUnavailable if those before it kept dying at once."""
        size = self._log.stat().st_size if self._log.exists() else 0
        is_quick = now - self._started_at < QUICK_END and size > self._log_bytes
        self._quick_ends = self._quick_ends + 1 if is_quick else 0
        self._started_at, self._log_bytes = now, size
        if self._quick_ends >= MOST_QUICK_ENDS:
            raise EngineUnavailable(
                "the background runtime ends right after its start, so nothing is carried out; "
                f"what was submitted waits. {self._log} ends with: {_last_line(self._log)}"
            )


def _last_line(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LAST_WORDS))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return "(it cannot be read)"
    return next((line.strip() for line in reversed(lines) if line.strip()), "(nothing)")


def ensure(
    command: Sequence[str], environment: Mapping[str, str], *, lock: RuntimeLock, log: Path
) -> bool:
    """Start the runtime as a process of its own, which outlives us and our terminal.

    Does nothing if one lives; whether one was started. Raises EngineUnavailable if it cannot be.
    """
    try:
        if not lock.acquire():
            return False
        _start([*command, LOCK_OPTION, str(LOCK_DESCRIPTOR)], environment, lock, log)
    except OSError as error:
        raise EngineUnavailable(f"the background runtime cannot be started: {error}") from error
    finally:
        lock.release()
    return True


def _start(
    command: Sequence[str], environment: Mapping[str, str], lock: RuntimeLock, log: Path
) -> None:
    # Not subprocess: its import would be a tenth of a quick command's time.
    os.posix_spawn(
        command[0],
        tuple(command),
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            (os.POSIX_SPAWN_DUP2, lock.descriptor, LOCK_DESCRIPTOR),
        ],
        setsid=True,
    )
