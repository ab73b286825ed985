"""Housekeeping: what is old goes, at the start and every day, and trouble stops nothing."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from anubis.adapters.access_store.memory import MemoryAccessStore
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.domain.errors import StoreUnavailable
from anubis.runtime.housekeeping import AGAIN, Housekeeper, Keeping
from anubis.runtime.supervising import Supervisor
from anubis.testing import builders
from anubis.testing.clock import ManualClock
from anubis.testing.contracts.script_store import a_file, an_archive

DAY = timedelta(days=1)
ARCHIVE = an_archive(a_file())


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.access = MemoryAccessStore()
        self.scripts = MemoryScriptStore(self.clock)
        keeping = Keeping(audit=3 * DAY, scripts=2 * DAY)
        self.keeper = Housekeeper(self.access, self.scripts, self.clock, keeping)
        self.defects: list[Exception] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async def failed(error: Exception) -> None:
            self.defects.append(error)

        async with Supervisor() as supervisor:
            supervisor.start(self.keeper.run, name="housekeeping", failed=failed)
            yield
        assert not self.defects

    async def note(self, age: timedelta) -> None:
        entry = builders.an_audit_entry()
        await self.access.note(dataclasses.replace(entry, at=self.clock.now() - age))

    async def recorded(self) -> int:
        return len(await self.access.audit())


@pytest.fixture
def world() -> World:
    return World()


async def test_what_is_old_at_the_start_is_forgotten_at_once(world: World) -> None:
    await world.note(age=4 * DAY)
    await world.note(age=2 * DAY)
    await world.scripts.put(ARCHIVE.name, ARCHIVE.parts())
    world.clock.advance(DAY / 2)
    async with world.running():
        await world.clock.run_for(timedelta(seconds=1))
        assert await world.recorded() == 1
        assert await world.scripts.has(ARCHIVE.name)


async def test_what_becomes_old_is_forgotten_within_a_day(world: World) -> None:
    await world.note(age=timedelta())
    await world.scripts.put(ARCHIVE.name, ARCHIVE.parts())
    async with world.running():
        await world.clock.run_for(3 * DAY)
        assert await world.recorded() == 1
        await world.clock.run_for(DAY)
        assert await world.recorded() == 0
        assert not await world.scripts.has(ARCHIVE.name)


async def test_trouble_with_one_store_keeps_neither_the_others_nor_the_next_hour(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(_: datetime) -> int:
        raise StoreUnavailable("the store is busy")

    await world.note(age=4 * DAY)
    await world.scripts.put(ARCHIVE.name, ARCHIVE.parts())
    world.clock.advance(3 * DAY)
    with monkeypatch.context() as patched:
        patched.setattr(world.access, "forget_before", busy)
        async with world.running():
            await world.clock.run_for(timedelta(seconds=1))
            assert await world.recorded() == 1
            assert not await world.scripts.has(ARCHIVE.name)
            patched.undo()
            await world.clock.run_for(AGAIN)
            assert await world.recorded() == 0


async def test_a_turn_in_which_nothing_is_old_changes_nothing(world: World) -> None:
    await world.note(age=timedelta())
    assert await world.keeper.turn()
    assert await world.recorded() == 1
