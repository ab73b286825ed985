"""Transfers and verifications go on without those who asked, and end truthfully."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from anubis.domain.dataset import Reference
from anubis.domain.errors import (
    DatasetInvalid,
    DatasetNotFound,
    NotPossible,
    PermanentError,
    TooMuch,
)
from anubis.domain.fetch import FetchState
from anubis.runtime import caretaking
from anubis.runtime.caretaking import Caretaker
from anubis.runtime.supervising import Supervisor
from anubis.testing.clock import ManualClock
from anubis.testing.datasets import SIZE, PlayedCache

SOON = 5.0
REFERENCE = Reference(uri="https://ada:secret@data.example/set.tgz?signature=x")


class World:
    def __init__(self, supervisor: Supervisor) -> None:
        self.clock = ManualClock()
        self.cache = PlayedCache(self.clock)
        self.caretaker = Caretaker(lambda: self.cache, supervisor, self.clock)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with Supervisor() as supervisor:
        yield World(supervisor)


async def test_a_transfer_goes_on_by_itself_and_tells_how_far_it_is(world: World) -> None:
    world.cache.gate.clear()
    begun = world.caretaker.start(REFERENCE, by="ada")
    assert begun.state is FetchState.FETCHING
    assert begun.uri == "https://data.example/set.tgz?…"

    await asyncio.sleep(0)
    assert world.caretaker.get(begun.key).done_bytes == SIZE // 2
    world.cache.gate.set()
    done = await world.caretaker.settled(begun.key, within=SOON)

    assert done.state is FetchState.DONE
    assert (done.done_bytes, done.total_bytes) == (SIZE, SIZE)
    assert done.ended_at == world.clock.now()
    assert begun.key in world.cache.held


async def test_those_who_want_the_same_share_a_transfer(world: World) -> None:
    world.cache.gate.clear()
    world.caretaker.start(REFERENCE, by="ada")
    shared = world.caretaker.start(REFERENCE, by="bob")
    world.caretaker.start(REFERENCE, by="bob")
    await asyncio.sleep(0)

    assert shared.wanted_by == ("ada", "bob")
    assert len(world.cache.asked) == 1

    assert world.caretaker.stop(shared.key, by="ada").state is FetchState.FETCHING
    assert world.caretaker.stop(shared.key, by="bob").state is FetchState.CANCELED
    await world.caretaker.settled(shared.key, within=SOON)
    assert world.cache.stopped == [shared.key]


async def test_an_admin_stops_what_others_want(world: World) -> None:
    world.cache.gate.clear()
    fetch = world.caretaker.start(REFERENCE, by="ada")

    assert world.caretaker.stop(fetch.key, by="root").state is FetchState.CANCELED
    with pytest.raises(NotPossible, match="has ended"):
        world.caretaker.stop(fetch.key, by="ada")


async def test_a_transfer_that_failed_says_why_and_is_begun_anew(world: World) -> None:
    world.cache.error = DatasetInvalid("found another checksum")
    fetch = world.caretaker.start(REFERENCE, by="ada")
    failed = await world.caretaker.settled(fetch.key, within=SOON)
    assert failed.state is FetchState.FAILED
    assert failed.error is world.cache.error

    world.cache.error = None
    world.caretaker.start(REFERENCE, by="ada")
    again = await world.caretaker.settled(fetch.key, within=SOON)
    assert again.state is FetchState.DONE
    assert again.error is None


async def test_a_defect_is_told_without_its_words(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr(world.cache, "fetch", broken)
    monkeypatch.setattr(world.cache, "verify", broken)
    found = world.cache.hold(Reference(uri="s3://bucket/other"))
    fetch = world.caretaker.start(REFERENCE, by="ada")
    failed = await world.caretaker.settled(fetch.key, within=SOON)

    assert isinstance(failed.error, PermanentError)
    assert "secret" not in str(failed.error)
    with pytest.raises(PermanentError, match="internal error"):
        await world.caretaker.verify(found.key)


async def test_a_bounded_number_is_under_way_and_a_bounded_number_remembered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caretaking, "MOST", 2)
    monkeypatch.setattr(caretaking, "REMEMBERED", 3)
    world.cache.gate.clear()
    some = [Reference(uri=f"s3://bucket/{number}") for number in range(8)]
    for reference in some[:2]:
        world.caretaker.start(reference, by="ada")
    with pytest.raises(TooMuch):
        world.caretaker.start(some[2], by="ada")

    world.cache.gate.set()
    for reference in some[:2]:
        await world.caretaker.settled(reference.key, within=SOON)
    for reference in some[2:]:
        world.caretaker.start(reference, by="ada")
        await world.caretaker.settled(reference.key, within=SOON)
    with pytest.raises(DatasetNotFound):
        world.caretaker.get(some[0].key)
    assert world.caretaker.get(some[-1].key).state is FetchState.DONE


async def test_a_verification_goes_on_when_who_asked_has_gone(world: World) -> None:
    found = world.cache.hold(REFERENCE)
    world.cache.damaged.add(found.key)
    world.cache.gate.clear()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.01):
            await world.caretaker.verify(found.key)

    world.cache.gate.set()
    async with asyncio.timeout(SOON):
        while found.key in world.cache.held:
            await asyncio.sleep(0)

    assert not await world.caretaker.verify(found.key), "what it found is told to the next"
    with pytest.raises(DatasetNotFound):
        await world.caretaker.verify(found.key)


async def test_an_old_answer_is_no_answer(world: World) -> None:
    found = world.cache.hold(REFERENCE)
    world.cache.gate.clear()
    asked = asyncio.ensure_future(world.caretaker.verify(found.key))
    await asyncio.sleep(0)
    asked.cancel()
    world.cache.gate.set()
    for _ in range(5):
        await asyncio.sleep(0)

    world.cache.damaged.add(found.key)
    world.clock.advance(caretaking.FRESH + timedelta(seconds=1))
    assert not await world.caretaker.verify(found.key)


async def test_two_who_ask_at_once_get_one_verification(world: World) -> None:
    found = world.cache.hold(REFERENCE)
    world.cache.damaged.add(found.key)

    both = await asyncio.gather(*(world.caretaker.verify(found.key) for _ in range(2)))

    assert both == [False, False]
