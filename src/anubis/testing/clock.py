"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta

NOON = datetime(2024, 5, 17, 12, tzinfo=UTC)
"""Where a manual clock starts, and the time at which builders build."""

_TURNS = 20
"""Turns of the event loop that woken tasks get before time goes on: more than any chain of
hand-overs in our stages is long."""


class ManualClock:
    """The clock port under a test's control. Sleepers wake when their time has been reached."""

    def __init__(self, now: datetime = NOON) -> None:
        self._now = now
        self._order = itertools.count()  # equal times wake in the order they went to sleep
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """The moment the test chose."""
        return self._now

    def monotonic(self) -> float:
        """Seconds since the clock's start; moves with ``now``."""
        return (self._now - NOON).total_seconds()

    async def sleep(self, seconds: float) -> None:
        """Wait until ``advance`` or ``run_for`` has moved time that far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        wake = asyncio.get_running_loop().create_future()
        due = self._now + timedelta(seconds=seconds)
        heapq.heappush(self._sleepers, (due, next(self._order), wake))
        await wake

    def advance(self, by: timedelta) -> None:
        """Move time at once and wake everybody whose time has come; they run when you await."""
        self._now += by
        self._wake()

    async def run_for(self, duration: timedelta) -> None:
        """Let time pass: stop at every sleeper's moment and give the woken ones time to act."""
        end = self._now + duration
        await _turns()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._now = max(self._now, self._sleepers[0][0])
            self._wake()
            await _turns()
        self._now = end

    def _wake(self) -> None:
        while self._sleepers and self._sleepers[0][0] <= self._now:
            _, _, wake = heapq.heappop(self._sleepers)
            if not wake.done():  # a cancelled sleep
                wake.set_result(None)


async def _turns() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
