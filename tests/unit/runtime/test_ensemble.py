"""What several units did is seen in the order in which it happened."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest

from anubis.adapters.engine.fake import FakeEngine
from anubis.domain.errors import EngineUnavailable
from anubis.domain.observation import EndCause, Observation, OutputChunk, Stream, UnitEnded
from anubis.domain.plan import Limits, Plan, Unit
from anubis.domain.run import RunId
from anubis.runtime.ensemble import DEPTH, Ensemble, Seen
from anubis.testing import builders
from anubis.testing.clock import NOON

RUN = builders.a_run_id()
NAMES = ("a", "b")


def a_plan() -> Plan:
    units = tuple(Unit(name=name, command=("x",), environment={}) for name in NAMES)
    return Plan(units=units, deciding="a", limits=Limits())


class Replaying(FakeEngine):
    """Shows hours of two units at once, as after a crash; ``b`` is slower to read."""

    def __init__(self, lines: int, *, breaks: bool = False) -> None:
        super().__init__()
        self._lines = lines
        self._breaks = breaks

    async def observe(self, run_id: RunId, unit: str = "a") -> AsyncIterator[Observation]:
        step = timedelta(seconds=2)
        offset = timedelta(seconds=NAMES.index(unit))
        for number in range(self._lines):
            at = NOON + offset + number * step
            yield OutputChunk(unit=unit, at=at, stream=Stream.STDOUT, data=b"x\n")
            if unit == "b" and number % 100 == 0:
                await asyncio.sleep(0.001)
        if self._breaks:
            raise EngineUnavailable("it went away")
        end = NOON + offset + self._lines * step
        yield UnitEnded(unit=unit, at=end, cause=EndCause.EXITED, exit_code=0)


async def seen_of(engine: FakeEngine, *, ends: int) -> list[Seen]:
    seen: list[Seen] = []
    async with asyncio.timeout(30), Ensemble(engine, RUN, a_plan()) as ensemble:
        for name in NAMES:
            ensemble.follow(name)
        while sum(isinstance(one, UnitEnded) for one in seen) < ends:
            seen += await ensemble.news(1.0)
    return seen


def of(seen: Sequence[Seen], unit: str) -> list[Seen]:
    return [one for one in seen if one.unit == unit]


async def test_a_long_past_is_replayed_in_order_and_nothing_is_lost() -> None:
    lines = 3 * DEPTH + 7
    seen = await seen_of(Replaying(lines), ends=2)
    assert len(of(seen, "a")) == len(of(seen, "b")) == lines + 1
    for name in NAMES:
        assert of(seen, name) == sorted(of(seen, name), key=lambda one: one.at)
    disorder = sum(first.at > second.at for first, second in itertools.pairwise(seen))
    assert disorder <= 2 * lines // DEPTH + 2  # at most where one batch meets the next


async def test_an_engine_that_goes_away_is_told_after_all_that_was_seen() -> None:
    with pytest.raises(EngineUnavailable, match="it went away"):
        await seen_of(Replaying(5, breaks=True), ends=1)


class Confused(Replaying):
    """The machine's clock is set back by an hour in the middle."""

    async def observe(self, run_id: RunId, unit: str = "a") -> AsyncIterator[Observation]:
        back = timedelta(hours=1)
        number = 0
        async for one in super().observe(run_id, unit):
            number += 1
            yield one if number < self._lines // 2 else dataclasses.replace(one, at=one.at - back)


async def test_a_clock_that_is_set_back_loses_and_doubles_nothing() -> None:
    lines = 3 * DEPTH + 7
    engine = Confused(lines)
    seen = await seen_of(engine, ends=2)
    for name in NAMES:
        assert of(seen, name) == [one async for one in engine.observe(RUN, name)]
