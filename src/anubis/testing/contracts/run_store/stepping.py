"""What a worker stores about the run it holds."""

from __future__ import annotations

import asyncio
import dataclasses
import math

import pytest

from anubis.domain import errors
from anubis.domain.event import EventKind
from anubis.domain.metric import MetricSource
from anubis.domain.run import RunState
from anubis.ports.run_store import RunStore, Step
from anubis.testing import builders
from anubis.testing.builders import HOUR, PATH_TO_SUCCESS
from anubis.testing.clock import NOON
from anubis.testing.contracts.run_store.given import (
    ANNA,
    BEN,
    NOBODY,
    SECOND,
    a_leased_run,
    add,
    take,
)


class SteppingContract:
    """Steps are stored whole or not at all."""

    async def test_the_time_of_a_run_ends_when_its_program_does(self, store: RunStore) -> None:
        """However long storing its output takes after that."""
        run_id = await a_leased_run(store)
        run = await store.apply(ANNA, builders.a_step(run_id, *PATH_TO_SUCCESS[:-1]))
        assert (run.state, run.ended_at) == (RunState.FINISHING, None)
        assert run.elapsed(NOON + 60 * SECOND) == SECOND
        ended = builders.a_step(run_id, RunState.SUCCEEDED, at=NOON + 60 * SECOND)
        run = await store.apply(ANNA, ended)
        assert (run.ended_at, run.state_since) == (NOON + 4 * SECOND, NOON + 60 * SECOND)
        assert run.elapsed(NOON + 90 * SECOND) == SECOND

    async def test_a_step_through_all_states_sets_times_and_writes_history(
        self, store: RunStore
    ) -> None:
        """One event for each move, numbered without gaps."""
        run_id = await a_leased_run(store)
        step = builders.a_step(run_id, *PATH_TO_SUCCESS)
        run = await store.apply(ANNA, dataclasses.replace(step, notes=[builders.a_note("hm")]))
        assert run == await store.get(run_id)
        assert (run.state, run.version, run.lease) == (RunState.SUCCEEDED, 3, None)
        assert (run.started_at, run.ended_at) == (NOON + 3 * SECOND, NOON + 4 * SECOND)
        assert run.state_since == NOON + 5 * SECOND
        assert run.outcome == step.outcome
        events = await store.events(run_id)
        assert [event.number for event in events] == list(range(1, 9))
        assert [event.kind for event in events[:2]] == [EventKind.STATE, EventKind.NOTE]
        assert events[-1].data == {"from": "FINISHING", "to": "SUCCEEDED"}

    async def test_an_illegal_move_stores_nothing_of_its_step(self, store: RunStore) -> None:
        """Not even the legal moves and notes before it."""
        run_id = await a_leased_run(store)
        before = await store.get(run_id)
        step = builders.a_step(run_id, RunState.FETCHING, RunState.RUNNING)
        extra = dataclasses.replace(
            step, notes=[builders.a_note()], summaries=[builders.a_summary()]
        )
        with pytest.raises(errors.IllegalMove, match="from FETCHING to RUNNING"):
            await store.apply(ANNA, extra)
        assert await store.get(run_id) == before
        assert len(await store.events(run_id)) == 1
        assert await store.summaries(run_id) == ()

    async def test_only_the_holder_may_step(self, store: RunStore) -> None:
        """Not another worker, not a former holder, and nobody once the run ended or is gone."""
        run_id = await a_leased_run(store)
        step = builders.a_step(run_id, RunState.CANCELED)
        with pytest.raises(errors.LeaseLost, match="anna"):
            await store.apply(BEN, step)
        await store.apply(ANNA, step)
        with pytest.raises(errors.LeaseLost, match="nobody"):
            await store.apply(ANNA, step)
        with pytest.raises(errors.LeaseLost):
            await store.apply(ANNA, builders.a_step(NOBODY, RunState.FETCHING))

    async def test_a_refused_step_does_not_spoil_those_beside_it(self, store: RunStore) -> None:
        """Even when many are stored together."""
        await add(store, *(builders.a_run(number) for number in range(20)))
        ids = await take(store, ANNA, limit=20)
        targets = [RunState.RUNNING if n % 3 else RunState.FETCHING for n in range(20)]
        steps = [builders.a_step(*pair) for pair in zip(ids, targets, strict=True)]
        answers = await asyncio.gather(
            *(store.apply(ANNA, step) for step in steps), return_exceptions=True
        )
        for number, answer in enumerate(answers):
            if number % 3:
                assert isinstance(answer, errors.IllegalMove)
            else:
                assert await store.get(ids[number]) == answer

    async def test_a_lease_that_ended_is_good_until_somebody_else_has_it(
        self, store: RunStore
    ) -> None:
        """A slow worker loses nothing if nobody needed its run."""
        run_id = await a_leased_run(store)
        much_later = builders.a_step(run_id, RunState.FETCHING, at=NOON + HOUR)
        assert (await store.apply(ANNA, much_later)).state is RunState.FETCHING

    async def test_a_step_may_give_the_lease_back(self, store: RunStore) -> None:
        """Together with a move: the next stage may take the run at once."""
        run_id = await a_leased_run(store)
        step = builders.a_step(run_id, RunState.FETCHING)
        run = await store.apply(ANNA, dataclasses.replace(step, release=True))
        assert run.lease is None
        assert await take(store, BEN) == [run_id]

    async def test_findings_are_stored_with_the_step(self, store: RunStore) -> None:
        """Fingerprint and outcome stay until replaced; summaries are replaced as a whole."""
        run_id = await a_leased_run(store)
        assert await store.fingerprint(run_id) is None
        found = builders.a_fingerprint()
        outcome = builders.an_outcome(RunState.FAILED)
        first = Step(run_id=run_id, fingerprint=found, outcome=outcome)
        run = await store.apply(ANNA, dataclasses.replace(first, summaries=[builders.a_summary()]))
        assert (run.outcome, run.state) == (outcome, RunState.SUBMITTED)
        loss = builders.a_summary("loss", unit="b")
        clients = builders.a_summary("loss", unit="a", source=MetricSource.RESOURCE)
        rate = builders.a_summary("rate", unit="b", source=MetricSource.EMITTED)
        await store.apply(ANNA, Step(run_id=run_id, summaries=[loss, rate, clients]))
        assert await store.summaries(run_id) == (clients, rate, loss)
        assert await store.fingerprint(run_id) == found
        assert (await store.get(run_id)).outcome == outcome

    async def test_a_loss_that_diverged_is_stored_too(self, store: RunStore) -> None:
        """Infinities and not-a-number are results, and names may be odd."""
        run_id = await a_leased_run(store)
        wild = builders.a_summary("lo\ud800ss", values=(math.inf, math.nan, -math.inf))
        await store.apply(ANNA, Step(run_id=run_id, summaries=[wild]))
        [summary] = await store.summaries(run_id)
        assert (summary.first, summary.last) == (math.inf, -math.inf)
        assert math.isnan(summary.mean)

    async def test_events_are_read_in_parts(self, store: RunStore) -> None:
        """A watcher asks for what is new."""
        run_id = await a_leased_run(store)
        odd = builders.a_note("ö", kind=EventKind.WARNING, data={"a": None, "b": 1.5, "c": True})
        await store.apply(ANNA, Step(run_id=run_id, notes=[odd, odd, odd]))
        numbers = [each.number for each in await store.events(run_id, after=1, limit=2)]
        assert numbers == [2, 3]
        [event] = await store.events(run_id, after=3)
        assert (event.message, event.kind, event.data) == (odd.message, odd.kind, odd.data)
        assert await store.events(run_id, after=4) == ()
