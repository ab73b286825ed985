"""Whatever workers, users and crashes do to each other, no run is lost, doubled or bent.

Random interleavings drive the memory store and two connections to one SQLite store at once. Both
must answer every question alike, and the promises of the port must hold after every step.
"""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import tempfile
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.adapters.run_store.sqlite import SqliteRunStore
from anubis.domain import errors
from anubis.domain.document import Document
from anubis.domain.event import Event, EventKind
from anubis.domain.run import ACTIVE, MOVES, Run, RunId, RunState, WorkerId
from anubis.ports.history import TrendQuery
from anubis.ports.run_reader import RunQuery
from anubis.ports.run_store import RunStore, Step
from anubis.testing import builders
from anubis.testing.clock import NOON

T = TypeVar("T")

WORKERS = [WorkerId(name) for name in ("anna", "ben", "cleo")]
LEASE = timedelta(seconds=30)
DOCUMENTS = [builders.a_document(b"one"), builders.a_document(b"two")]
BENCHMARKS = ["bert", "resnet"]
SUBMITTERS = ["ann", "bob"]
MILLISECOND = timedelta(milliseconds=1)
EVERYTHING = RunQuery(limit=1000)

workers = st.sampled_from(WORKERS)
some_states = st.sets(st.sampled_from(RunState), max_size=4)
queries = st.builds(
    RunQuery,
    states=some_states,
    benchmark=st.sampled_from([None, *BENCHMARKS]),
    labels=st.sampled_from([[], [("parity", "0")], [("parity", "0"), ("parity", "1")]]),
    family=st.sampled_from([None, "nightly"]),
    submitter=st.sampled_from([None, *SUBMITTERS]),
    since=st.sampled_from([None, NOON + 3 * MILLISECOND]),
    until=st.sampled_from([None, NOON + 9 * MILLISECOND]),
    before=st.sampled_from([None, builders.a_run_id(6)]),
    limit=st.integers(0, 5),
)
trends = st.builds(
    TrendQuery,
    benchmark=st.sampled_from(BENCHMARKS),
    metric=st.just("loss"),
    unit=st.sampled_from([None, "benchmark", "other"]),
    before=st.sampled_from([None, builders.a_run_id(6)]),
    limit=st.integers(0, 3),
)


@st.composite
def paths(draw: st.DrawFn) -> list[RunState]:
    """Moves of one step: mostly legal after one another, from a state that may not be the run's."""
    state = draw(st.sampled_from(sorted(ACTIVE)))
    path: list[RunState] = []
    for _ in range(draw(st.integers(0, 4))):
        if not (choices := sorted(MOVES[state])):
            break
        state = draw(st.sampled_from(choices))
        path.append(state)
    return path


class Interleavings(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = contextlib.AsyncExitStack()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="anubis-test-"))
        path = pathlib.Path(folder) / "anubis.db"
        self.memory = MemoryRunStore()
        self.sqlite = [self.opened(path), self.opened(path)]
        self.turn = 0
        self.now: datetime = NOON
        self.granted: dict[RunId, tuple[WorkerId, datetime]] = {}
        self.ended: dict[RunId, Run] = {}
        self.fed: Sequence[Event] = ()
        self.last = 0

    def opened(self, path: pathlib.Path) -> RunStore:
        return self.runner.run(self.stack.enter_async_context(SqliteRunStore.open(path)))

    def ask(self, question: Callable[[RunStore], Awaitable[T]]) -> T | errors.AnubisError:
        """Ask the model and the store; they must answer alike, in errors too."""
        self.turn += 1
        expected = self.runner.run(_answer(question(self.memory)))
        found = self.runner.run(_answer(question(self.sqlite[self.turn % 2])))
        if isinstance(expected, errors.AnubisError):
            assert (type(found), str(found)) == (type(expected), str(expected))
        else:
            assert found == expected
        return expected

    def must(self, question: Callable[[RunStore], Awaitable[T]]) -> T:
        """Ask what cannot be refused."""
        answer = self.ask(question)
        assert not isinstance(answer, errors.AnubisError)
        return answer

    def everything(self) -> Sequence[Run]:
        return self.must(lambda store: store.page(EVERYTHING))

    def any_run(self, data: st.DataObject) -> RunId:
        known = [run.id for run in self.everything()]
        return data.draw(st.sampled_from([*known, builders.a_run_id(999)]))

    def held_run(self, data: st.DataObject) -> RunId:
        return data.draw(st.sampled_from(sorted(self.granted)))

    @rule(
        number=st.integers(0, 12),
        document=st.sampled_from(DOCUMENTS),
        benchmark=st.sampled_from(BENCHMARKS),
        submitter=st.sampled_from(SUBMITTERS),
        key=st.sampled_from([None, None, "once", "first"]),
    )
    def add(
        self, number: int, document: Document, benchmark: str, submitter: str, key: str | None
    ) -> None:
        run = builders.a_run(
            number,
            document=document,
            benchmark=benchmark,
            submitter=submitter,
            labels={"parity": str(number % 2)},
            family="nightly" if number % 3 else None,
            priority=number % 2,
        )
        self.ask(lambda store: store.add(run, document, builders.PLAN, "submitted", key=key))

    @rule(states=some_states, each=st.integers(0, 3))
    def look_at_the_queue(self, states: set[RunState], each: int) -> None:
        wanted = states or ACTIVE
        heads = self.must(lambda store: store.heads(now=self.now, states=wanted, each=each))
        self.must(lambda store: store.active_of(SUBMITTERS[each % 2], limit=4))
        if runs := self.everything():
            self.must(lambda store: store.ahead(runs[-1], states=wanted, limit=4))
        ids = [run.id for run in heads]
        assert {run.id for run in self.take(WORKERS[0], wanted, 9, among=ids)} == set(ids)

    @rule(worker=workers, states=some_states, limit=st.integers(0, 3), urgent=st.booleans())
    def lease(self, worker: WorkerId, states: set[RunState], limit: int, urgent: bool) -> None:
        self.take(worker, states or ACTIVE, limit, urgent)

    def take(
        self,
        worker: WorkerId,
        states: Collection[RunState],
        limit: int,
        urgent: bool = False,
        among: Sequence[RunId] | None = None,
    ) -> Sequence[Run]:
        runs = self.must(
            lambda store: store.lease(
                worker,
                now=self.now,
                duration=LEASE,
                states=states,
                limit=limit,
                urgent_only=urgent,
                among=among,
            )
        )
        for run in runs:
            _, ends = self.granted.get(run.id, (worker, NOON - LEASE))
            assert ends < self.now, "a run was given away while its lease was good"
            self.granted[run.id] = worker, self.now + LEASE
        return runs

    @rule(worker=workers)
    def renew(self, worker: WorkerId) -> None:
        ids = [run.id for run in self.everything()]
        kept = self.must(lambda store: store.renew(worker, ids, now=self.now, duration=LEASE))
        assert kept == {run_id for run_id, (holder, _) in self.granted.items() if holder == worker}
        for run_id in kept:
            self.granted[run_id] = worker, self.now + LEASE

    @rule(worker=workers)
    def start_again_after_a_crash(self, worker: WorkerId) -> None:
        self.ask(lambda store: store.release_all(worker))
        self.granted = {
            run_id: grant for run_id, grant in self.granted.items() if grant[0] != worker
        }

    @rule(seconds=st.sampled_from([1, 20, 40, 4000]))
    def time_passes(self, seconds: int) -> None:
        """Leases of workers that crashed, and of slow ones, end this way."""
        self.now += timedelta(seconds=seconds)

    @rule(data=st.data(), worker=workers, path=paths(), release=st.booleans())
    def any_step(
        self, data: st.DataObject, worker: WorkerId, path: list[RunState], release: bool
    ) -> None:
        self.step(worker, self.any_run(data), path, release)

    @precondition(lambda self: self.granted)
    @rule(data=st.data(), length=st.integers(0, 6), release=st.booleans())
    def good_step(self, data: st.DataObject, length: int, release: bool) -> None:
        run_id = self.held_run(data)
        worker, _ = self.granted[run_id]
        [state] = [run.state for run in self.everything() if run.id == run_id]
        path: list[RunState] = []
        while len(path) < length and MOVES[state]:
            state = data.draw(st.sampled_from(sorted(MOVES[state])))
            path.append(state)
        assert not isinstance(self.step(worker, run_id, path, release), errors.AnubisError)

    def step(
        self, worker: WorkerId, run_id: RunId, path: list[RunState], release: bool
    ) -> Run | errors.AnubisError:
        ends = bool(path) and path[-1].is_terminal
        step = Step(
            run_id=run_id,
            moves=builders.moves(*path, at=self.now),
            notes=[builders.a_note(f"note at {self.now}")] if len(path) % 2 else (),
            outcome=builders.an_outcome(path[-1]) if ends else None,
            fingerprint=builders.a_fingerprint(moment=f"{self.now}") if release else None,
            summaries=[builders.a_summary(values=(len(path), 1.0))] if ends else None,
            release=release,
        )
        run = self.ask(lambda store: store.apply(worker, step))
        if isinstance(run, errors.LeaseLost):
            assert self.granted.get(run_id, (None,))[0] != worker
        elif isinstance(run, Run):
            assert self.granted[run_id][0] == worker, "a worker moved a run it does not hold"
            if run.lease is None:
                del self.granted[run_id]
        return run

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        run_id = self.any_run(data)
        self.ask(lambda store: store.request_cancel(run_id, now=self.now, by="user"))

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        run_id = self.any_run(data)
        if self.ask(lambda store: store.delete(run_id)) is None:
            assert run_id in self.ended, "a run was forgotten before it ended"
            del self.ended[run_id]

    @rule(query=queries)
    def list_some(self, query: RunQuery) -> None:
        self.must(lambda store: store.page(query))

    @rule(query=trends, after=st.sampled_from(["", "bert", "nightly"]))
    def look_back(self, query: TrendQuery, after: str) -> None:
        self.must(lambda store: store.trend(query))
        self.must(lambda store: store.benchmarks(after=after, limit=2))
        self.must(lambda store: store.families(after=after, limit=2))

    @invariant()
    def the_feed_only_grows_at_its_end(self) -> None:
        feed = self.must(lambda store: store.feed(after=0))
        known = {run.id for run in self.everything()}
        kept = [event for event in self.fed if event.run_id in known]
        assert list(feed[: len(kept)]) == kept
        new = [event.sequence for event in feed[len(kept) :]]
        assert new == sorted(set(new))
        assert all(sequence > self.last for sequence in new)
        self.fed, self.last = feed, self.must(lambda store: store.last_sequence())

    @invariant()
    def the_stores_agree_on_every_run(self) -> None:
        runs = self.everything()
        assert [run.id for run in runs] == sorted((run.id for run in runs), reverse=True)
        for run in runs:
            self.the_stores_agree_on(run.id)

    def the_stores_agree_on(self, run_id: RunId) -> None:
        self.must(lambda store: store.get(run_id))
        self.must(lambda store: store.document(run_id))
        self.must(lambda store: store.fingerprint(run_id))
        self.must(lambda store: store.summaries(run_id))
        self.ask(lambda store: store.plan(run_id))

    @invariant()
    def what_has_ended_never_changes(self) -> None:
        for run in self.everything():
            if run.state.is_terminal:
                assert self.ended.setdefault(run.id, run) == run
                assert run.lease is None
            else:
                assert run.id not in self.ended

    @invariant()
    def history_is_legal_without_gaps_and_leads_to_the_present(self) -> None:
        for run in self.everything():
            assert self.replayed(run.id) is run.state

    def replayed(self, run_id: RunId) -> RunState | None:
        events = self.must(lambda store: store.events(run_id))
        assert [event.number for event in events] == list(range(1, len(events) + 1))
        state: RunState | None = None
        for event in events:
            if event.kind is EventKind.STATE:
                assert event.data["from"] == state
                after = RunState(str(event.data["to"]))
                assert after in (MOVES[state] if state else {RunState.SUBMITTED})
                state = after
        return state

    @invariant()
    def counts_equal_reality(self) -> None:
        reality = [run.state for run in self.everything()]
        counts = self.must(lambda store: store.counts())
        assert {state: reality.count(state) for state in reality} == dict(counts)

    def teardown(self) -> None:
        try:
            self.every_run_can_still_end()
        finally:
            self.runner.run(self.stack.aclose())
            self.runner.close()

    def every_run_can_still_end(self) -> None:
        self.now += timedelta(days=30)
        for run in self.take(WorkerId("rescuer"), ACTIVE, 1000):
            self.step(WorkerId("rescuer"), run.id, [RunState.ERROR], False)
        assert all(run.state.is_terminal for run in self.everything())
        assert self.must(lambda store: store.active(10)) == ()
        self.counts_equal_reality()


async def _answer(question: Awaitable[T]) -> T | errors.AnubisError:
    try:
        return await question
    except errors.AnubisError as error:
        return error


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
