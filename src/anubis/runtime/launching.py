"""Start the background runtime of a home, unless there is one.

A command first stores its run and then tries the lock; the runtime first lets go of the lock and
then looks for runs. Whatever the order, one of them sees the other. Who gets the lock leaves it to
the process it starts: however many commands find no runtime at the same moment, one is started.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from anubis.domain.errors import EngineUnavailable
from anubis.runtime.locking import RuntimeLock

LOCK_OPTION = "--lock"
LOCK_DESCRIPTOR = 3
"""How a runtime is told that it was started with the lock, and where it finds it."""


def ensure(
    command: Sequence[str], environment: Mapping[str, str], *, lock: RuntimeLock, log: Path
) -> None:
    """Start the runtime as a process of its own, which outlives us and our terminal.

    Does nothing if one lives. Raises EngineUnavailable if it cannot be started.
    """
    try:
        if lock.acquire():
            _start([*command, LOCK_OPTION, str(LOCK_DESCRIPTOR)], environment, lock, log)
    except OSError as error:
        raise EngineUnavailable(f"the background runtime cannot be started: {error}") from error
    finally:
        lock.release()


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
