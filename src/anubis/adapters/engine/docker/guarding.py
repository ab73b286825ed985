"""What engine and guard share: the directory of a unit, and whether somebody guards it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from anubis.adapters.engine.process import following, specifying, watching
from anubis.adapters.engine.process.guardian import ending, files, journal
from anubis.domain.observation import UnitEnded
from anubis.domain.plan import Plan

EMIT_MODE = 0o666
"""Images may have users of their own; who can reach the FIFO at all is said by the folder."""


def emit_fifo(directory: Path) -> str:
    """Where a unit emits to."""
    return f"{files.live(str(directory))}/{files.STREAMS[2][0]}"


def make_place(directory: Path) -> None:
    """Make the unit's directory and the pipes of its guard. Safe to repeat; also after a restart
    of the machine, which empties the memory that pipes are in. Raises OSError.
    """
    # The zygote holds the pipes of all three streams; a container uses the last one only.
    specifying.make_place(directory)
    Path(emit_fifo(directory)).chmod(EMIT_MODE)


def write_spec(directory: Path, plan: Plan, unit: str, container: dict[str, object]) -> None:
    """Write down what a guard must know; ``container`` names it and its daemon."""
    spec = {
        "unit": unit,
        "running_seconds": specifying.longest(plan, unit).total_seconds(),
        "grace": plan.limits.grace.total_seconds(),
        "output_bytes": plan.limits.output_bytes,
        **container,
    }
    files.write_durably(str(directory), files.CONTAINER, json.dumps(spec).encode(), sync=False)


def refuse(directory: Path, unit: str, message: str) -> None:
    """End a unit that cannot be a container before it begins, unless it has begun."""
    lock = files.take_lock(str(directory))
    if lock is None:
        return
    try:
        with contextlib.suppress(FileExistsError):
            journal.Journal.create(str(directory)).close()
            ending.Ending(unit, ending.NOT_STARTED, message).write(str(directory))
    finally:
        os.close(lock)


def is_used(directory: Path) -> bool:
    """Whether a unit was specified, started or refused there."""
    return files.is_container(str(directory)) or files.was_started(str(directory))


class ContainerWatch(watching.Watch):
    """``call`` asks for a guard where there is none."""

    def __init__(self, directory: Path, unit: str, call: Callable[[], Awaitable[None]]) -> None:
        super().__init__(directory, unit)
        self._call = call
        self._alone_since: float | None = None

    async def _look(self, now: float) -> UnitEnded | None:
        if not self._directory.is_dir():
            return watching.lost(self._unit, "the run was removed")
        if watching.is_guarded(self._directory):
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = now
        elif now - self._alone_since >= watching.APPEAR_SECONDS:
            self._alone_since = now
            await self._call()
        return following.read_ended(self._directory)
