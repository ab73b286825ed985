"""Many runs together: the feed of all that happens, groups, trends, lists by time and person."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence

from anubis.domain.event import Event
from anubis.domain.metric import MetricSource, Summary
from anubis.domain.run import RunId, RunState
from anubis.ports.history import Group, TrendQuery
from anubis.ports.run_store import RunStore, Step
from anubis.testing import builders
from anubis.testing.builders import HOUR, PATH_TO_SUCCESS
from anubis.testing.clock import NOON
from anubis.testing.contracts.run_store.given import (
    ANNA,
    SECOND,
    a_leased_run,
    add,
    an_ended_run,
    page,
    take,
)


async def measured(
    store: RunStore,
    number: int,
    *summaries: Summary,
    end: RunState = RunState.SUCCEEDED,
    benchmark: str = "resnet",
) -> RunId:
    """Add a run and let it end with these summaries."""
    run = builders.a_run(number, benchmark=benchmark)
    await add(store, run)
    await take(store)
    step = builders.a_step(run.id, *PATH_TO_SUCCESS[:-1], end)
    await store.apply(ANNA, dataclasses.replace(step, summaries=summaries))
    return run.id


class FeedContract:
    """One order of all events, that never changes behind whoever reads it."""

    async def test_the_feed_has_every_event_in_the_order_of_storing(self, store: RunStore) -> None:
        """Whatever their times say; each as its run has it."""
        assert (await store.feed(after=0), await store.last_sequence()) == ((), 0)
        late, early = builders.a_run(1, at=NOON + HOUR), builders.a_run(0)
        await add(store, late, early)
        await take(store)
        await store.apply(ANNA, builders.a_step(early.id, *PATH_TO_SUCCESS[:2]))
        feed = await store.feed(after=0)
        assert [event.run_id for event in feed] == [late.id, early.id, early.id, early.id]
        assert [event for event in feed if event.run_id == early.id] == [
            *await store.events(early.id)
        ]
        sequences = [event.sequence for event in feed]
        assert sequences == sorted(set(sequences))
        assert await store.last_sequence() == sequences[-1]

    async def test_the_feed_is_read_in_parts(self, store: RunStore) -> None:
        """Who goes on from the last one seen misses nothing."""
        await add(store, *(builders.a_run(number) for number in range(5)))
        seen: list[Event] = []
        while part := await store.feed(after=seen[-1].sequence if seen else 0, limit=2):
            seen += part
        assert seen == list(await store.feed(after=0))
        assert await store.feed(after=10**30) == ()
        assert await store.feed(after=-1, limit=0) == ()

    async def test_a_place_in_the_feed_is_never_given_twice(self, store: RunStore) -> None:
        """Not even when the newest run is purged: whoever saw it goes on after it."""
        await add(store, builders.a_run(0))
        await take(store)
        gone = await an_ended_run(store, 1)
        last = await store.last_sequence()
        await store.delete(gone)
        assert await store.last_sequence() == last
        assert [event.run_id for event in await store.feed(after=0)] == [builders.a_run_id(0)]
        await add(store, builders.a_run(2))
        [event] = await store.feed(after=last)
        assert (event.run_id, event.sequence > last) == (builders.a_run_id(2), True)

    async def test_readers_beside_many_writers_miss_nothing(self, store: RunStore) -> None:
        """An event never appears below one that was there before."""
        seen: list[Event] = []

        async def read() -> None:
            while len(seen) < 60:
                seen.extend(await store.feed(after=seen[-1].sequence if seen else 0, limit=7))
                await asyncio.sleep(0)

        runs = [builders.a_run(number) for number in range(60)]
        await asyncio.gather(read(), *(add(store, run) for run in runs))
        assert seen == list(await store.feed(after=0))
        assert {event.run_id for event in seen} == {run.id for run in runs}


class GroupContract:
    """Runs that share a benchmark, a family or a person."""

    async def test_benchmarks_come_by_name_with_their_newest_run(self, store: RunStore) -> None:
        """In parts, and only those that have runs."""
        assert await store.benchmarks() == ()
        named = ["resnet", "bert", "resnet", "Bert", "ünet"]
        runs = [builders.a_run(number, benchmark=name) for number, name in enumerate(named)]
        await add(store, *reversed(runs))
        groups = await store.benchmarks()
        assert groups == (
            Group(name="Bert", runs=1, newest=runs[3].id),
            Group(name="bert", runs=1, newest=runs[1].id),
            Group(name="resnet", runs=2, newest=runs[2].id),
            Group(name="ünet", runs=1, newest=runs[4].id),
        )
        assert await store.benchmarks(after="bert", limit=1) == groups[2:3]
        assert await store.benchmarks(after="ünet") == ()
        assert await store.benchmarks(limit=0) == ()

    async def test_families_are_those_that_runs_have(self, store: RunStore) -> None:
        """Runs without one are not in any."""
        runs = [
            builders.a_run(0, family="nightly"),
            builders.a_run(1, family="weekly"),
            builders.a_run(2),
            builders.a_run(3, family="nightly"),
        ]
        await add(store, *runs)
        nightly, weekly = await store.families()
        assert nightly == Group(name="nightly", runs=2, newest=runs[3].id)
        assert weekly == Group(name="weekly", runs=1, newest=runs[1].id)
        assert await store.families(after="nightly") == (weekly,)

    async def test_runs_are_listed_by_person(self, store: RunStore) -> None:
        """Alone, and with other filters."""
        runs = [
            builders.a_run(
                number,
                submitter="ann" if number % 2 else "ben",
                benchmark="bert" if number < 3 else "resnet",
            )
            for number in range(6)
        ]
        await add(store, *runs)
        assert await page(store, submitter="ann") == [runs[5].id, runs[3].id, runs[1].id]
        assert await page(store, submitter="ann", limit=1, before=runs[5].id) == [runs[3].id]
        assert await page(store, submitter="ben", benchmark="bert") == [runs[2].id, runs[0].id]
        assert await page(store, submitter="eve") == []

    async def test_runs_are_listed_by_time_of_submission(self, store: RunStore) -> None:
        """From a moment, that one included, to before another."""
        runs = [builders.a_run(0, at=NOON + second * SECOND) for second in range(4)]
        await add(store, *runs)
        ids = [run.id for run in runs]
        assert await page(store, since=NOON + SECOND) == [ids[3], ids[2], ids[1]]
        assert await page(store, until=NOON + SECOND) == [ids[0]]
        assert await page(store, since=NOON + SECOND, until=NOON + 3 * SECOND) == [ids[2], ids[1]]
        assert await page(store, since=NOON, until=NOON) == []
        assert await page(store, until=NOON + HOUR, before=ids[1]) == [ids[0]]
        assert await page(store, since=NOON - 60 * 365 * 24 * HOUR, limit=1) == [ids[3]]
        both: dict[str, object] = {"benchmark": "resnet", "submitter": "user"}
        assert await page(store, since=NOON + 2 * SECOND, **both) == [ids[3], ids[2]]
        assert await page(store, until=NOON + 2 * SECOND, **both) == [ids[1], ids[0]]


class TrendContract:
    """What a benchmark measured over time."""

    async def test_a_trend_is_what_successful_runs_measured_newest_first(
        self, store: RunStore
    ) -> None:
        """Not what failed, other benchmarks or other metrics."""
        old, new = builders.a_summary(values=(3.0, 1.0)), builders.a_summary(values=(2.0,))
        first = await measured(store, 0, old, builders.a_summary("rate"))
        await measured(store, 1, old, end=RunState.FAILED)
        await measured(store, 2, old, benchmark="bert")
        last = await measured(store, 3, new)
        points = await store.trend(TrendQuery(benchmark="resnet", metric="loss"))
        assert [(each.run_id, each.summary) for each in points] == [(last, new), (first, old)]
        assert {(each.state, each.submitted_at) for each in points} == {(RunState.SUCCEEDED, NOON)}
        assert await store.trend(TrendQuery(benchmark="resnet", metric="lo%")) == ()

    async def test_a_run_gives_a_point_for_every_unit_that_measured(self, store: RunStore) -> None:
        """By unit, then by source; or those of one unit."""
        emitted = builders.a_summary(unit="b", source=MetricSource.EMITTED)
        pattern = builders.a_summary(unit="b")
        other = builders.a_summary(unit="a", source=MetricSource.RESOURCE)
        await measured(store, 0, pattern, other, emitted)
        query = TrendQuery(benchmark="resnet", metric="loss")
        assert [each.summary for each in await store.trend(query)] == [other, emitted, pattern]
        [point] = await store.trend(dataclasses.replace(query, unit="a"))
        assert point.summary == other
        assert await store.trend(dataclasses.replace(query, unit="")) == ()

    async def test_the_limit_counts_runs_that_are_looked_at(self, store: RunStore) -> None:
        """Also those without the metric, so that a page has a known cost."""
        loss = builders.a_summary()
        ids = [
            await measured(store, 0, loss),
            await measured(store, 1, builders.a_summary("rate")),
            await measured(store, 2, loss),
        ]

        async def found(query: TrendQuery) -> Sequence[RunId]:
            return [point.run_id for point in await store.trend(query)]

        query = TrendQuery(benchmark="resnet", metric="loss", limit=2)
        assert await found(query) == [ids[2]]
        assert await found(dataclasses.replace(query, before=ids[2])) == [ids[0]]
        assert await found(dataclasses.replace(query, limit=0)) == []

    async def test_a_run_under_way_is_no_part_of_a_trend(self, store: RunStore) -> None:
        """Its summaries may be stored before its end."""
        run_id = await a_leased_run(store)
        await store.apply(ANNA, Step(run_id=run_id, summaries=[builders.a_summary()]))
        assert await store.trend(TrendQuery(benchmark="resnet", metric="loss")) == ()


class RecallingContract(FeedContract, GroupContract, TrendContract):
    """All of it."""
