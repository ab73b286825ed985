"""The clock of the test kit moves only when it is told to."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from anubis.testing.clock import NOON, ManualClock

SECOND = timedelta(seconds=1)


async def test_a_sleeper_wakes_when_its_time_is_reached_and_not_before() -> None:
    clock = ManualClock()
    sleeper = asyncio.create_task(clock.sleep(2))
    await asyncio.sleep(0)
    clock.advance(SECOND)
    await asyncio.sleep(0)
    assert not sleeper.done()
    clock.advance(SECOND)
    await sleeper
    assert clock.now() == NOON + 2 * SECOND


async def test_a_loop_that_sleeps_turns_once_for_each_period_that_passes() -> None:
    clock = ManualClock()
    seen = []

    async def tick() -> None:
        while True:
            await clock.sleep(1)
            seen.append(clock.now())

    ticking = asyncio.create_task(tick())
    await clock.run_for(3 * SECOND)
    ticking.cancel()
    assert seen == [NOON + SECOND, NOON + 2 * SECOND, NOON + 3 * SECOND]
    assert clock.now() == NOON + 3 * SECOND


async def test_a_cancelled_sleep_harms_nobody() -> None:
    clock = ManualClock()
    sleeper = asyncio.create_task(clock.sleep(1))
    await asyncio.sleep(0)
    sleeper.cancel()
    await asyncio.sleep(0)
    await clock.run_for(2 * SECOND)
    assert sleeper.cancelled()


async def test_sleeping_for_no_time_gives_others_a_turn() -> None:
    await ManualClock().sleep(0)
