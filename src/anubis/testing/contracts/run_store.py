"""What every run store must do.

Subclass ``RunStoreContract`` and give it a fixture ``store`` with a fresh, empty store::

    class TestMyStore(RunStoreContract):
        @pytest.fixture
        async def store(self) -> AsyncIterator[RunStore]:
            async with MyStore.open(...) as store:
                yield store
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
from datetime import timedelta

import pytest

from anubis.domain import errors
from anubis.domain.event import EventKind
from anubis.domain.metric import MetricSource
from anubis.domain.run import ACTIVE, Run, RunId, RunState, WorkerId
from anubis.ports.run_store import RunQuery, RunStore, Step
from anubis.testing import builders
from anubis.testing.builders import HOUR, PATH_TO_SUCCESS, PLAN
from anubis.testing.clock import NOON

ANNA, BEN = WorkerId("anna"), WorkerId("ben")
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
NOBODY = builders.a_run_id(999)


async def add(store: RunStore, *runs: Run) -> None:
    """Store new runs, all of the default document."""
    for run in runs:
        await store.add(run, builders.a_document(), PLAN, "submitted")


async def take(store: RunStore, worker: WorkerId = ANNA, limit: int = 1) -> list[RunId]:
    """Lease runs at noon for a minute."""
    leased = await store.lease(worker, now=NOON, duration=MINUTE, states=ACTIVE, limit=limit)
    return [run.id for run in leased]


async def a_leased_run(store: RunStore, number: int = 0) -> RunId:
    """Add a run and give it to Anna."""
    run = builders.a_run(number)
    await add(store, run)
    assert await take(store) == [run.id]
    return run.id


async def an_ended_run(store: RunStore, number: int = 0) -> RunId:
    """Add a run and bring it to SUCCEEDED."""
    run_id = await a_leased_run(store, number)
    await store.apply(ANNA, builders.a_step(run_id, *PATH_TO_SUCCESS))
    return run_id


async def page(store: RunStore, **filters: object) -> list[RunId]:
    """Ids of a page."""
    query = dataclasses.replace(RunQuery(), **filters)  # type: ignore[arg-type] # any field
    return [run.id for run in await store.page(query)]


class AddingContract:
    """How runs come in, and how they are found again."""

    async def test_a_run_is_given_back_exactly_as_it_was_added(self, store: RunStore) -> None:
        """Every field survives."""
        run = builders.a_run(labels={"team": "vision", "gpu": "none"}, family="nightly")
        await add(store, run)
        assert await store.get(run.id) == run

    async def test_the_first_event_says_that_the_run_was_submitted(self, store: RunStore) -> None:
        """History starts with the start."""
        await add(store, builders.a_run())
        [event] = await store.events(builders.a_run_id())
        assert (event.number, event.kind, event.message) == (1, EventKind.STATE, "submitted")
        assert event.data == {"from": None, "to": "SUBMITTED"}

    async def test_adding_the_same_run_again_changes_nothing(self, store: RunStore) -> None:
        """A client that heard no answer may try again."""
        run_id = await a_leased_run(store)
        before = await store.get(run_id)
        await add(store, builders.a_run())
        assert await store.get(run_id) == before
        assert len(await store.events(run_id)) == 1

    async def test_an_id_cannot_be_used_for_two_descriptors(self, store: RunStore) -> None:
        """The first one stays."""
        await add(store, builders.a_run())
        other = builders.a_document(b"other")
        with pytest.raises(errors.NotPossible):
            await store.add(builders.a_run(document=other), other, PLAN, "again")
        assert await store.document(builders.a_run_id()) == builders.a_document()

    async def test_a_run_starts_in_submitted_and_with_its_own_document(
        self, store: RunStore
    ) -> None:
        """Defects of the caller are refused before anything is stored."""
        running = dataclasses.replace(builders.a_run(), state=RunState.RUNNING)
        with pytest.raises(errors.IllegalMove):
            await add(store, running)
        with pytest.raises(errors.NotPossible):
            await store.add(builders.a_run(), builders.a_document(b"other"), PLAN, "")
        assert await store.page(RunQuery()) == ()

    async def test_documents_keep_bytes_and_paths_that_are_not_text(self, store: RunStore) -> None:
        """Names come from a file system, which knows only bytes."""
        document = builders.a_document(b"\x00\xff", name="a\udcff.toml", directory="/d\udc80")
        run = builders.a_run(document=document)
        await store.add(run, document, PLAN, "odd \udcff")
        assert await store.document(run.id) == document
        assert len(await store.events(run.id)) == 1

    async def test_a_run_is_found_by_id_prefix_and_last(self, store: RunStore) -> None:
        """In any case, with or without dashes."""
        first, last = builders.a_run(0), builders.a_run(1000)
        await add(store, last, first)
        assert await store.resolve("last") == last.id
        assert await store.resolve(" LAST ") == last.id
        for spelling in (first.id, first.id.upper(), first.id.replace("-", ""), first.id[:13]):
            assert await store.resolve(spelling) == first.id

    async def test_an_ambiguous_prefix_names_candidates(self, store: RunStore) -> None:
        """So that the user sees what to type next."""
        runs = [builders.a_run(number) for number in range(6)]
        await add(store, *runs)
        with pytest.raises(errors.RunAmbiguous, match=runs[5].id):
            await store.resolve(runs[0].id[:8])

    @pytest.mark.parametrize("reference", ["", "-", "ffff", "%", "_", "g", "last run", "0" * 33])
    async def test_what_names_no_run_is_not_found(self, store: RunStore, reference: str) -> None:
        """Wildcards and nonsense match nothing."""
        with pytest.raises(errors.RunNotFound):
            await store.resolve("last")
        await add(store, builders.a_run())
        with pytest.raises(errors.RunNotFound):
            await store.resolve(reference)

    async def test_questions_about_an_unknown_run_are_answered_with_not_found(
        self, store: RunStore
    ) -> None:
        """All of them, and no row is made by asking."""
        questions = (
            store.get(NOBODY),
            store.events(NOBODY),
            store.document(NOBODY),
            store.plan(NOBODY),
            store.fingerprint(NOBODY),
            store.summaries(NOBODY),
            store.delete(NOBODY),
            store.request_cancel(NOBODY, now=NOON, by="user"),
        )
        for question in questions:
            with pytest.raises(errors.RunNotFound):
                await question

    async def test_every_change_gives_another_token_and_reading_does_not(
        self, store: RunStore
    ) -> None:
        """A watcher that polls the token misses nothing."""
        tokens = [store.change_token()]
        await add(store, builders.a_run())
        tokens.append(store.change_token())
        await take(store)
        tokens.append(store.change_token())
        await store.apply(ANNA, builders.a_step(builders.a_run_id(), RunState.FETCHING))
        tokens.append(store.change_token())
        assert len(set(tokens)) == len(tokens)
        await store.page(RunQuery())
        assert store.change_token() == tokens[-1]


class ListingContract:
    """Pages, filters, counts."""

    async def test_pages_go_from_new_to_old_without_gap_or_overlap(self, store: RunStore) -> None:
        """Whatever the order of adding."""
        runs = [builders.a_run(number) for number in (3, 0, 4, 1, 2)]
        await add(store, *runs)
        newest_first = sorted((run.id for run in runs), reverse=True)
        assert await page(store, limit=2) == newest_first[:2]
        assert await page(store, limit=2, before=newest_first[1]) == newest_first[2:4]
        assert await page(store, limit=2, before=newest_first[3]) == newest_first[4:]
        assert await page(store, limit=2, before=newest_first[4]) == []
        assert await page(store, limit=0) == []

    async def test_every_filter_that_is_given_must_hold(self, store: RunStore) -> None:
        """Alone and together."""
        nightly = builders.a_run(0, benchmark="bert", labels={"team": "nlp"}, family="nightly")
        other = builders.a_run(1, benchmark="bert", labels={"team": "nlp", "gpu": "a"})
        third = builders.a_run(2, labels={"team": "nlp"}, family="nightly")
        await add(store, nightly, other, third)
        team = ("team", "nlp")
        assert await page(store, benchmark="bert") == [other.id, nightly.id]
        assert await page(store, label=team) == [third.id, other.id, nightly.id]
        assert await page(store, label=("team", "n%")) == []
        assert await page(store, family="nightly") == [third.id, nightly.id]
        assert await page(store, family="nightly", label=team, before=third.id) == [nightly.id]
        assert await page(store, benchmark="bert", label=team, limit=1) == [other.id]
        assert await page(store, benchmark="bert", family="nightly", label=team) == [nightly.id]
        assert await page(store, benchmark="resnet", label=("gpu", "a")) == []

    async def test_states_filter_alone_and_with_a_benchmark(self, store: RunStore) -> None:
        """Several states mean any of them."""
        ended = await an_ended_run(store, 0)
        waiting = builders.a_run(1, benchmark="bert")
        leased = builders.a_run(2)
        await add(store, waiting, leased)
        both = {RunState.SUBMITTED, RunState.SUCCEEDED}
        assert await page(store, states=both) == [leased.id, waiting.id, ended]
        assert await page(store, states=both, limit=2) == [leased.id, waiting.id]
        assert await page(store, states=both, benchmark="resnet") == [leased.id, ended]
        assert await page(store, states={RunState.SUCCEEDED}) == [ended]
        assert await page(store, states={RunState.FAILED}) == []

    async def test_counts_follow_every_move(self, store: RunStore) -> None:
        """Adding, moving and deleting."""
        ended = await an_ended_run(store, 0)
        await add(store, builders.a_run(1))
        assert _present(await store.counts()) == {RunState.SUCCEEDED: 1, RunState.SUBMITTED: 1}
        await store.delete(ended)
        assert _present(await store.counts()) == {RunState.SUBMITTED: 1}

    async def test_active_gives_the_oldest_runs_that_have_not_ended(self, store: RunStore) -> None:
        """Held or not."""
        await an_ended_run(store, 0)
        runs = [builders.a_run(number) for number in (2, 1, 3)]
        await add(store, *runs)
        await take(store)
        assert [run.id for run in await store.active(2)] == [runs[1].id, runs[0].id]


def _present(counts: object) -> dict[RunState, int]:
    assert hasattr(counts, "items")
    return {state: count for state, count in counts.items() if count}


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


class SteppingContract:
    """Steps are stored whole or not at all."""

    async def test_a_step_through_all_states_sets_times_and_writes_history(
        self, store: RunStore
    ) -> None:
        """One event for each move, numbered without gaps."""
        run_id = await a_leased_run(store)
        step = builders.a_step(run_id, *PATH_TO_SUCCESS)
        run = await store.apply(ANNA, dataclasses.replace(step, notes=[builders.a_note("hm")]))
        assert run == await store.get(run_id)
        assert (run.state, run.version, run.lease) == (RunState.SUCCEEDED, 3, None)
        assert (run.started_at, run.ended_at) == (NOON + 3 * SECOND, NOON + 5 * SECOND)
        assert run.state_since == run.ended_at
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


class RunStoreContract(
    AddingContract, ListingContract, LeasingContract, SteppingContract, EndingContract
):
    """All of it. Inherit from this one."""
