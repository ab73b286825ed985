"""What the queue asks: who is next, who is ahead, how many somebody has; and keys that say once."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from datetime import datetime

import pytest

from anubis.domain import errors
from anubis.domain.demand import Demand
from anubis.domain.run import ACTIVE, Run, RunId, RunState
from anubis.ports.run_store import RunStore, Step
from anubis.testing import builders
from anubis.testing.builders import HOUR, PATH_TO_SUCCESS, PLAN
from anubis.testing.clock import NOON
from anubis.testing.contracts.run_store.given import (
    ANNA,
    BEN,
    MINUTE,
    NOBODY,
    SECOND,
    add,
    an_ended_run,
    page,
)


async def heads(
    store: RunStore,
    *,
    now: datetime = NOON,
    states: Collection[RunState] = ACTIVE,
    each: int = 1,
) -> set[RunId]:
    """Ids of the candidates."""
    return {run.id for run in await store.heads(now=now, states=states, each=each)}


async def take_these(store: RunStore, *run_ids: RunId, urgent_only: bool = False) -> list[RunId]:
    """Lease some of these to Anna, at noon for a minute."""
    leased = await store.lease(
        ANNA,
        now=NOON,
        duration=MINUTE,
        states=ACTIVE,
        limit=9,
        urgent_only=urgent_only,
        among=run_ids,
    )
    return [run.id for run in leased]


async def start(store: RunStore, run: Run) -> None:
    """Bring a run that nobody holds to RUNNING, and let it go."""
    assert await take_these(store, run.id) == [run.id]
    step = builders.a_step(run.id, *PATH_TO_SUCCESS[:4])
    await store.apply(ANNA, dataclasses.replace(step, release=True))


class KeyContract:
    """The same key never makes a second run."""

    async def test_adding_gives_the_run_as_it_is_stored(self, store: RunStore) -> None:
        """The new one, or the one that was there."""
        run = dataclasses.replace(
            builders.a_run(priority=-3),
            demand=Demand(cpus=1.5, memory_bytes=2**40, gpus=2, exclusive=True, concurrency=1),
        )
        assert await store.add(run, builders.a_document(), PLAN, "", key="k") == run
        assert await store.get(run.id) == run
        held = await store.lease(ANNA, now=NOON, duration=MINUTE, states=ACTIVE, limit=1)
        again = await store.add(run, builders.a_document(), PLAN, "", key="k")
        assert [again] == list(held)

    async def test_a_key_used_again_gives_the_run_that_has_it(self, store: RunStore) -> None:
        """And stores nothing. Another person may have the same key."""
        first, second = builders.a_run(0), builders.a_run(1)
        other = builders.a_run(2, submitter="other")
        await store.add(first, builders.a_document(), PLAN, "", key="k")
        assert await store.add(second, builders.a_document(), PLAN, "", key="k") == first
        assert await store.with_key(other.submitter, "k") is None
        assert await store.add(other, builders.a_document(), PLAN, "", key="k") == other
        assert await store.with_key(first.submitter, "k") == first
        assert await store.with_key(other.submitter, "k") == other
        assert await page(store) == [other.id, first.id]
        with pytest.raises(errors.RunNotFound):
            await store.events(second.id)

    async def test_a_key_cannot_be_used_for_two_descriptors(self, store: RunStore) -> None:
        """The message names the run that has it."""
        first, other = builders.a_run(0), builders.a_document(b"other")
        await store.add(first, builders.a_document(), PLAN, "", key="k")
        with pytest.raises(errors.NotPossible, match=first.id):
            await store.add(builders.a_run(1, document=other), other, PLAN, "", key="k")
        assert await page(store) == [first.id]

    async def test_runs_without_a_key_have_nothing_in_common(self, store: RunStore) -> None:
        """An empty key is a key, a missing one is not."""
        await add(store, builders.a_run(0), builders.a_run(1))
        third = builders.a_run(2)
        assert await store.add(third, builders.a_document(), PLAN, "", key="") == third
        assert len(await page(store)) == 3

    async def test_a_key_is_forgotten_with_its_run(self, store: RunStore) -> None:
        """Not when the run ends, but when it is deleted."""
        run, second = builders.a_run(0), builders.a_run(1)
        await store.add(run, builders.a_document(), PLAN, "", key="k")
        await take_these(store, run.id)
        await store.apply(ANNA, builders.a_step(run.id, RunState.CANCELED))
        assert (await store.add(second, builders.a_document(), PLAN, "", key="k")).id == run.id
        await store.delete(run.id)
        assert await store.add(second, builders.a_document(), PLAN, "", key="k") == second


class QueueContract:
    """Who is next, who is ahead, how many somebody has."""

    async def test_the_heads_are_the_first_of_every_persons_every_benchmark(
        self, store: RunStore
    ) -> None:
        """A higher priority comes first, then age."""
        ann = [builders.a_run(number, submitter="ann") for number in (3, 2)]
        urgent = builders.a_run(5, submitter="ann", priority=1)
        idle = builders.a_run(0, submitter="ann", priority=-1)
        bert = builders.a_run(4, submitter="ann", benchmark="bert")
        ben = builders.a_run(6, submitter="ben")
        away = dataclasses.replace(builders.a_run(7, submitter="ann"), engine="docker")
        await add(store, *ann, urgent, idle, bert, ben, away)
        others = {bert.id, ben.id, away.id}
        assert await heads(store) == {urgent.id, *others}
        assert await heads(store, each=3) == {urgent.id, ann[0].id, ann[1].id, *others}
        assert await heads(store, each=0) == set()
        assert await heads(store, states=[]) == set()

    async def test_only_free_runs_that_wait_in_the_states_asked_for_are_heads(
        self, store: RunStore
    ) -> None:
        """Not those that are held, asked to stop, started or ended."""
        await an_ended_run(store, 0)
        started, held, stopped = (builders.a_run(number) for number in (1, 2, 3))
        await add(store, started, held, stopped)
        await start(store, started)
        await take_these(store, held.id)
        await store.request_cancel(stopped.id, now=NOON, by="user")
        assert await heads(store) == set()
        assert await heads(store, now=NOON + MINUTE + SECOND) == {held.id}
        await store.apply(ANNA, dataclasses.replace(builders.a_step(held.id), release=True))
        assert await heads(store) == {held.id}
        assert await heads(store, states={RunState.QUEUED, RunState.RUNNING}) == set()
        await take_these(store, held.id)
        step = builders.a_step(held.id, RunState.FETCHING, RunState.QUEUED)
        await store.apply(ANNA, dataclasses.replace(step, release=True))
        assert await heads(store, states={RunState.QUEUED, RunState.SUBMITTED}) == {held.id}

    async def test_ahead_are_runs_that_would_leave_before(self, store: RunStore) -> None:
        """Of whoever, counted up to the limit; whether they are held does not matter."""
        runs = [
            builders.a_run(0, submitter="ann"),
            builders.a_run(1, submitter="ben", benchmark="bert"),
            builders.a_run(2),
            builders.a_run(3, priority=5, submitter="ann"),
            builders.a_run(4, priority=-5),
            dataclasses.replace(builders.a_run(5, priority=9), engine="docker"),
        ]
        await add(store, *runs)
        await take_these(store, runs[0].id)
        found = [await store.ahead(run, states=ACTIVE, limit=9) for run in runs]
        assert found == [1, 2, 3, 0, 4, 0]  # the last waits for another engine
        assert await store.ahead(runs[4], states=ACTIVE, limit=3) == 3
        assert await store.ahead(runs[4], states=[RunState.QUEUED], limit=9) == 0
        await store.apply(ANNA, Step(run_id=runs[0].id, release=True))
        await start(store, runs[0])
        assert await store.ahead(runs[4], states=ACTIVE, limit=9) == 3

    async def test_what_somebody_has_are_runs_that_have_not_ended(self, store: RunStore) -> None:
        """Waiting, running or held; counted up to the limit."""
        await an_ended_run(store, 0)
        runs = [builders.a_run(number) for number in (1, 2, 3)]
        await add(store, *runs, builders.a_run(4, submitter="ann"))
        await start(store, runs[0])
        await take_these(store, runs[1].id)
        assert await store.active_of("user", limit=9) == 3
        assert await store.active_of("user", limit=2) == 2
        assert await store.active_of("ann", limit=9) == 1
        assert await store.active_of("nobody", limit=9) == 0

    async def test_a_lease_among_some_runs_gives_no_other(self, store: RunStore) -> None:
        """Free ones, oldest first; unknown ids are passed over."""
        runs = [builders.a_run(number) for number in range(4)]
        await add(store, *runs)
        await store.lease(BEN, now=NOON, duration=HOUR, states=ACTIVE, limit=1)
        assert await take_these(store, *(run.id for run in reversed(runs[:3])), NOBODY) == [
            runs[1].id,
            runs[2].id,
        ]
        assert await take_these(store) == []
        await store.request_cancel(runs[3].id, now=NOON, by="user")
        late = builders.a_run(5, at=NOON - 2 * HOUR)
        await add(store, late, builders.a_run(6))
        asked = (late.id, runs[3].id, builders.a_run_id(6))
        assert await take_these(store, *asked, urgent_only=True) == [late.id, runs[3].id]
