"""Wait for news of one run, and notice when nobody is left who could bring any."""

from __future__ import annotations

import abc
import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

from anubis.adapters.engine.process import following
from anubis.adapters.engine.process.guardian import files, recovery
from anubis.domain.observation import EndCause, UnitEnded
from anubis.domain.plan import SOLE

POLL_SECONDS = 0.1
IDLE_POLL_SECONDS = 0.25
"""How often we look for output; being told of every byte would cost the measured machine more."""

IDLE_AFTER_SECONDS = 2.0
LOOK_SECONDS = 0.5  #: how often we check that the shim still lives

APPEAR_SECONDS = 2.0
"""How long a specified run may lack a shim when no zygote we know was asked for one."""

TRUST_SECONDS = 20.0
"""How long the zygote may take to finish the run of a dead shim before we do it ourselves."""


def lost(unit: str, message: str) -> UnitEnded:
    """The end of a run of which nothing more can be known."""
    return UnitEnded(unit=unit, at=datetime.now(UTC), cause=EndCause.LOST, message=message)


class Pipes:
    """FIFOs of one run, held open: their content survives shim and zygote while we live."""

    def __init__(self, directory: Path) -> None:
        self._held: list[int] = []
        with contextlib.suppress(FileNotFoundError):
            self._held = recovery.hold(str(directory))

    def close(self) -> None:
        """Let go."""
        while self._held:
            os.close(self._held.pop())


async def never_started(unit: str) -> AsyncIterator[UnitEnded]:
    """All that can be observed of a unit that is not here."""
    what = "the run" if unit == SOLE else unit
    yield lost(unit, f"{what} was never started on this machine")


class Watch(abc.ABC):
    """One observer's patience with one unit."""

    def __init__(self, directory: Path, unit: str) -> None:
        self._directory = directory
        self._unit = unit
        self._news_at = time.monotonic()
        self._look_at = 0.0

    async def ended(self) -> UnitEnded | None:
        """How the unit ended, None while it goes on."""
        ended = following.read_ended(self._directory)
        now = time.monotonic()
        if ended is not None or now < self._look_at:
            return ended
        self._look_at = now + LOOK_SECONDS
        return await self._look(now)

    @abc.abstractmethod
    async def _look(self, now: float) -> UnitEnded | None:
        """See whether anybody guards the unit, and do what must be done if nobody does."""

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


class ProcessWatch(Watch):
    """Finishes a unit that nobody guards."""

    def __init__(self, directory: Path, unit: str, is_served: Callable[[], bool]) -> None:
        super().__init__(directory, unit)
        self._is_served = is_served
        self._orphaned_at: float | None = None

    async def _look(self, now: float) -> UnitEnded | None:
        if is_guarded(self._directory):
            self._orphaned_at = None
            return None
        if self._orphaned_at is None:
            self._orphaned_at = now
            self._look_at = 0.0
        if now - self._orphaned_at < self._patience():
            return None
        return await asyncio.to_thread(self._recover)

    def _patience(self) -> float:
        if self._is_served():
            return TRUST_SECONDS
        return 0.0 if files.was_started(str(self._directory)) else APPEAR_SECONDS

    def _recover(self) -> UnitEnded | None:
        directory = str(self._directory)
        reason = "the shim is gone and left no status"
        if not files.was_started(directory):
            reason = "nobody started the run"
        elif files.read_json(files.live(directory), files.SPEC) is None:
            reason = "the machine was restarted while it ran"
        try:
            if not recovery.recover(str(self._directory), reason):
                return None
        except OSError as error:
            return lost(self._unit, f"{reason}, and its output could not be saved: {error}")
        ended = following.read_ended(self._directory)
        return ended or lost(self._unit, "the run was removed")


def is_guarded(directory: Path) -> bool:
    """Whether a shim, or somebody who finishes its work, holds the run."""
    if not directory.is_dir():
        return False
    if not files.was_started(str(directory)):
        return False  # its lock must stay free for a shim that is about to take it
    lock = files.take_lock(str(directory))
    if lock is None:
        return True
    os.close(lock)
    return False
