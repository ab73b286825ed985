"""Who holds a run, and what ends it."""

from __future__ import annotations

import asyncio

import pytest

from anubis.domain import errors
from anubis.domain.event import EventKind
from anubis.domain.run import ACTIVE, RunState, WorkerId
from anubis.ports.run_store import RunStore, Step
from anubis.testing import builders
from anubis.testing.builders import HOUR, PLAN
from anubis.testing.clock import NOON
from anubis.testing.contracts.run_store.given import (
    ANNA,
    BEN,
    MINUTE,
    NOBODY,
    SECOND,
    a_leased_run,
    add,
    an_ended_run,
    page,
    take,
)


class LeasingContract:
    """At most one worker holds a run."""

    async def test_leases_go_to_the_oldest_free_runs(self, store: RunStore) -> None:
        """And to one worker only."""
        runs = [builders.a_run(number) for number in range(3)]
        await add(store, *reversed(runs))
        assert await take(store, ANNA, limit=2) == [runs[0].id, runs[1].id]
        assert await take(store, BEN, limit=2) == [runs[2].id]
        assert await take(store, ANNA, limit=2) == []
        held = await store.get(runs[0].id)
        assert held.lease is not None
        assert (held.lease.worker, held.lease.ends, held.version) == (ANNA, NOON + MINUTE, 2)

    async def test_only_the_states_asked_for_are_leased(self, store: RunStore) -> None:
        """A worker takes what it can do."""
        await add(store, builders.a_run())
        for states in ((), (RunState.QUEUED,), (RunState.SUCCEEDED,)):
            assert not await store.lease(ANNA, now=NOON, duration=MINUTE, states=states, limit=9)

    async def test_an_expired_lease_goes_to_the_next_worker(self, store: RunStore) -> None:
        """A worker that goes silent does not keep its run, but until then it does."""
        run_id = await a_leased_run(store)
        for later, expected in ((MINUTE, 0), (MINUTE + SECOND, 1)):
            got = await store.lease(BEN, now=NOON + later, duration=MINUTE, states=ACTIVE, limit=1)
            assert len(got) == expected
        with pytest.raises(errors.LeaseLost, match="ben"):
            await store.apply(ANNA, builders.a_step(run_id, RunState.FETCHING))

    async def test_workers_that_ask_at_the_same_moment_share_nothing(self, store: RunStore) -> None:
        """Every run goes to exactly one of many."""
        await add(store, *(builders.a_run(number) for number in range(10)))
        workers = [WorkerId(f"worker {number}") for number in range(8)]
        answers = await asyncio.gather(*(take(store, worker, limit=3) for worker in workers))
        given = [run_id for answer in answers for run_id in answer]
        assert len(given) == len(set(given)) == 10

    async def test_renewing_extends_only_what_is_still_held(self, store: RunStore) -> None:
        """And says what that is."""
        mine, lost = await a_leased_run(store, 0), await a_leased_run(store, 1)
        await store.apply(ANNA, Step(run_id=lost, release=True))
        kept = await store.renew(ANNA, [mine, lost, NOBODY], now=NOON + HOUR, duration=MINUTE)
        assert kept == {mine}
        lease = (await store.get(mine)).lease
        assert lease is not None
        assert lease.ends == NOON + HOUR + MINUTE
        assert await store.renew(ANNA, [], now=NOON, duration=MINUTE) == frozenset()

    async def test_a_worker_that_starts_again_gives_back_all_it_held(self, store: RunStore) -> None:
        """But nothing that others hold."""
        first = await a_leased_run(store, 0)
        second = builders.a_run(1)
        await add(store, second)
        assert await take(store, BEN) == [second.id]
        await store.release_all(ANNA)
        assert (await store.get(first)).lease is None
        assert (await store.get(second.id)).lease is not None

    async def test_urgent_leases_skip_what_can_wait(self, store: RunStore) -> None:
        """Urgent: somebody wants it to stop, or it has waited too long."""
        calm, stopped = builders.a_run(1, at=NOON + HOUR), builders.a_run(0)
        late, held = builders.a_run(2, at=NOON - HOUR), builders.a_run(3, at=NOON - 2 * HOUR)
        await add(store, held)
        await take(store, BEN)
        await add(store, calm, stopped, late)
        await store.request_cancel(stopped.id, now=NOON, by="user")
        got = await store.lease(
            ANNA, now=NOON, duration=MINUTE, states=ACTIVE, limit=9, urgent_only=True
        )
        assert [run.id for run in got] == [late.id, stopped.id]

    async def test_a_worker_finds_what_is_urgent_among_its_own(self, store: RunStore) -> None:
        """As above; not what others hold, nor what nobody does."""
        late, calm = builders.a_run(0, at=NOON - 2 * HOUR), builders.a_run(1, at=NOON + HOUR)
        stopped, other = builders.a_run(2, at=NOON + HOUR), builders.a_run(3, at=NOON - HOUR)
        await add(store, late, calm, stopped)
        assert len(await take(store, ANNA, limit=3)) == 3
        await add(store, other)
        assert await take(store, BEN) == [other.id]
        await add(store, builders.a_run(4, at=NOON - HOUR))
        await store.request_cancel(stopped.id, now=NOON, by="user")
        assert [run.id for run in await store.urgent(ANNA, now=NOON)] == [late.id, stopped.id]
        assert [run.id for run in await store.urgent(BEN, now=NOON)] == [other.id]
        await store.release_all(ANNA)
        assert not await store.urgent(ANNA, now=NOON)


class EndingContract:
    """Cancel, forget."""

    async def test_a_wish_to_cancel_is_noted_once(self, store: RunStore) -> None:
        """The state does not move: whoever holds the run will act."""
        run_id = await a_leased_run(store)
        run = await store.request_cancel(run_id, now=NOON, by="user")
        again = await store.request_cancel(run_id, now=NOON + MINUTE, by="another")
        assert run == again == await store.get(run_id)
        assert (run.cancel_requested_at, run.state) == (NOON, RunState.SUBMITTED)
        events = await store.events(run_id, after=1)
        assert [event.kind for event in events] == [EventKind.CANCEL_REQUESTED]
        assert events[0].data == {"by": "user"}

    async def test_what_has_ended_cannot_be_canceled(self, store: RunStore) -> None:
        """And stays as it is."""
        run_id = await an_ended_run(store)
        with pytest.raises(errors.NotPossible, match="SUCCEEDED"):
            await store.request_cancel(run_id, now=NOON, by="user")

    async def test_the_plan_is_forgotten_with_the_terminal_move(self, store: RunStore) -> None:
        """It may hold secrets."""
        run_id = await a_leased_run(store)
        assert await store.plan(run_id) == PLAN
        await store.apply(ANNA, builders.a_step(run_id, RunState.ERROR))
        with pytest.raises(errors.NotPossible):
            await store.plan(run_id)

    async def test_only_a_run_that_has_ended_can_be_deleted(self, store: RunStore) -> None:
        """The others may still have a program running."""
        run_id = await a_leased_run(store)
        with pytest.raises(errors.NotPossible, match="SUBMITTED"):
            await store.delete(run_id)
        assert (await store.get(run_id)).id == run_id

    async def test_a_deleted_run_leaves_nothing_and_takes_nothing_along(
        self, store: RunStore
    ) -> None:
        """Another run of the same document keeps it."""
        gone, kept = await an_ended_run(store, 0), await an_ended_run(store, 1)
        await store.delete(gone)
        with pytest.raises(errors.RunNotFound):
            await store.get(gone)
        assert await page(store) == [kept]
        assert await store.document(kept) == builders.a_document()
        await add(store, builders.a_run(0))
        assert len(await store.events(gone)) == 1
