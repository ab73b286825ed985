"""What engine and guard share: the directory of a unit, and whether somebody guards it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from anubis.adapters.engine.process import following, specifying
from anubis.adapters.engine.process.guardian import ending, files, journal
from anubis.domain.observation import UnitEnded
from anubis.domain.plan import Plan

POLL_SECONDS, IDLE_POLL_SECONDS, IDLE_AFTER_SECONDS = 0.1, 0.25, 2.0
LOOK_SECONDS = 0.5  #: how often we check that the guard still lives
APPEAR_SECONDS = 2.0
"""How long a guard that was asked for may take to begin, before we ask for another."""

EMIT_MODE = 0o666
"""Images may have users of their own; who can reach the FIFO at all is said by the folder."""


def emit_fifo(directory: Path) -> str:
    """Where a unit emits to."""
    return f"{files.live(str(directory))}/{files.STREAMS[2][0]}"


def make_place(directory: Path) -> None:
    """Make the unit's directory and the pipes of its guard. Safe to repeat; also after a restart
    of the machine, which empties the memory that pipes are in. Raises OSError.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    live = files.live(str(directory))
    Path(live).mkdir(mode=0o700, exist_ok=True)
    # The zygote holds the pipes of all three streams; a container uses the last one only.
    for fifo in (*(fifo for fifo, _ in files.STREAMS), files.CONTROL):
        with contextlib.suppress(FileExistsError):
            os.mkfifo(f"{live}/{fifo}", 0o600)
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


def is_guarded(directory: Path) -> bool:
    """Whether a guard holds the unit."""
    if not directory.is_dir() or not files.was_started(str(directory)):
        return False  # its lock must stay free for a guard that is about to take it
    lock = files.take_lock(str(directory))
    if lock is None:
        return True
    os.close(lock)
    return False


class Watch:
    """One observer's patience with one unit. ``call`` asks for a guard where there is none."""

    def __init__(self, directory: Path, call: Callable[[], Awaitable[None]]) -> None:
        self._directory = directory
        self._call = call
        self._alone_since: float | None = None
        self._look_at = 0.0
        self._news_at = time.monotonic()

    async def ended(self) -> UnitEnded | None:
        """How the unit ended, None while it goes on."""
        ended = following.read_ended(self._directory)
        now = time.monotonic()
        if ended is not None or now < self._look_at:
            return ended
        self._look_at = now + LOOK_SECONDS
        if is_guarded(self._directory):
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = now
        elif now - self._alone_since >= APPEAR_SECONDS and self._directory.is_dir():
            self._alone_since = now
            await self._call()
        return following.read_ended(self._directory)

    def note_news(self) -> None:
        """Something was seen: look again soon."""
        self._news_at = time.monotonic()

    async def wait(self, end: asyncio.Event) -> None:
        """Until the unit may have ended, or it is time to look again."""
        is_idle = time.monotonic() - self._news_at > IDLE_AFTER_SECONDS
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDLE_POLL_SECONDS if is_idle else POLL_SECONDS):
                await end.wait()
            self._look_at = 0.0
