"""Runs in plain dictionaries: the model that every other store is compared with.

Product code, not a mock: it keeps every promise of the port except surviving the process. No
method awaits anything, so each is atomic on its event loop. Not for several threads.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from anubis.adapters.run_store import ordering, references, transitions
from anubis.domain import identity
from anubis.domain.document import Document, Fingerprint
from anubis.domain.event import Event, NewEvent
from anubis.domain.metric import Summary
from anubis.domain.run import Run, RunId, RunState, WorkerId
from anubis.ports.history import MOST_COUNTED, Group, TrendPoint, TrendQuery
from anubis.ports.run_reader import RunQuery
from anubis.ports.run_store import Step


@dataclasses.dataclass(kw_only=True, slots=True)
class _Record:
    """All that is kept about one run."""

    run: Run
    document: Document
    plan: str
    key: str | None
    events: list[Event] = dataclasses.field(default_factory=list)
    fingerprint: Fingerprint | None = None
    summaries: tuple[Summary, ...] = ()


class MemoryRunStore:
    """A run store that lives and dies with its process."""

    def __init__(self) -> None:
        self._records: dict[RunId, _Record] = {}
        self._ids: list[RunId] = []  # sorted, so oldest first
        self._feed: list[Event] = []  # of all runs, by sequence
        self._sequence = 0  # of the newest event there ever was
        self._changes = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls) -> AsyncIterator[MemoryRunStore]:
        """Give an empty store; there to be exchangeable with stores that must be closed."""
        yield cls()

    async def add(
        self, run: Run, document: Document, plan: str, message: str, *, key: str | None = None
    ) -> Run:
        """See the port."""
        transitions.check_new(run, document)
        if (stored := self._records.get(run.id)) is not None:
            transitions.check_same(stored.run, run)
            return stored.run
        if (keyed := self._keyed(run.submitter, key)) is not None:
            transitions.check_same_key(keyed, run, f"{key}")
            return keyed
        record = _Record(run=run, document=document, plan=plan, key=key)
        self._records[run.id] = record
        bisect.insort(self._ids, run.id)
        self._note(record, [transitions.first_event(run, message)])
        return self._put(run)

    async def get(self, run_id: RunId) -> Run:
        """See the port."""
        return self._record(run_id).run

    async def resolve(self, reference: str) -> RunId:
        """See the port."""
        if references.is_last(reference):
            return references.newest(self._ids[-1:])
        prefix = references.prefix(reference)
        start = bisect.bisect_left(self._ids, prefix)
        end = bisect.bisect_left(self._ids, prefix + identity.ABOVE_ALL_IDS)
        return references.only(reference, self._ids[start:end][::-1])

    async def page(self, query: RunQuery) -> Sequence[Run]:
        """See the port."""
        bounds = references.bounds(query)
        start = bisect.bisect_left(self._ids, bounds.start)
        end = bisect.bisect_left(self._ids, bounds.end)
        within = (self._records[run_id].run for run_id in reversed(self._ids[start:end]))
        matching = (run for run in within if _matches(run, query))
        return tuple(itertools.islice(matching, max(0, query.limit)))

    async def counts(self) -> Mapping[RunState, int]:
        """See the port."""
        return Counter(record.run.state for record in self._records.values())

    async def lease(
        self,
        worker: WorkerId,
        *,
        now: datetime,
        duration: timedelta,
        states: Collection[RunState],
        limit: int,
        urgent_only: bool = False,
        among: Collection[RunId] | None = None,
    ) -> Sequence[Run]:
        """See the port."""
        free = (
            run
            for run in self._free(now, states)
            if (among is None or run.id in among)
            and (not urgent_only or run.cancel_requested_at is not None or run.deadline <= now)
        )
        chosen = tuple(itertools.islice(free, max(0, limit)))
        return tuple(self._put(transitions.leased(run, worker, now + duration)) for run in chosen)

    async def renew(
        self, worker: WorkerId, run_ids: Collection[RunId], *, now: datetime, duration: timedelta
    ) -> frozenset[RunId]:
        """See the port."""
        held = [run for run in self._held_by(worker) if run.id in set(run_ids)]
        for run in held:
            self._put(transitions.leased(run, worker, now + duration))
        return frozenset(run.id for run in held)

    async def urgent(self, worker: WorkerId, *, now: datetime) -> Sequence[Run]:
        """See the port."""
        held = self._held_by(worker)
        return [run for run in held if run.cancel_requested_at is not None or run.deadline <= now]

    async def release_all(self, worker: WorkerId) -> None:
        """See the port."""
        for run in self._held_by(worker):
            self._put(transitions.released(run))

    async def apply(self, worker: WorkerId, step: Step) -> Run:
        """See the port."""
        record = self._records.get(step.run_id)
        held = transitions.check_holder(record.run if record else None, worker, step.run_id)
        after, events = transitions.stepped(held, step)
        assert record is not None, "check_holder refuses a run that is not there"
        self._note(record, events)
        if step.fingerprint is not None:
            record.fingerprint = step.fingerprint
        if step.summaries is not None:
            record.summaries = _ordered(step.summaries)
        if after.state.is_terminal:
            record.plan = ""
        return self._put(after)

    async def request_cancel(self, run_id: RunId, *, now: datetime, by: str) -> Run:
        """See the port."""
        record = self._record(run_id)
        after, events = transitions.cancel_requested(record.run, now, by)
        if not events:
            return after
        self._note(record, events)
        return self._put(after)

    async def heads(
        self, *, now: datetime, states: Collection[RunState], each: int
    ) -> Sequence[Run]:
        """See the port."""
        waiting = (run for run in self._free(now, states) if run.started_at is None)
        return ordering.heads((run for run in waiting if not run.cancel_requested_at), each)

    async def ahead(self, run: Run, *, states: Collection[RunState], limit: int) -> int:
        """See the port."""
        same = (each for each in self._active() if each.engine == run.engine)
        active = (each for each in same if each.state in states)
        waiting = (each for each in active if each.started_at is None)
        before = sum(ordering.place(each) < ordering.place(run) for each in waiting)
        return min(before, max(0, limit))

    async def active_of(self, submitter: str, *, limit: int) -> int:
        """See the port."""
        return min(sum(run.submitter == submitter for run in self._active()), max(0, limit))

    async def with_key(self, submitter: str, key: str) -> Run | None:
        """See the port."""
        return self._keyed(submitter, key)

    async def active(self, limit: int) -> Sequence[Run]:
        """See the port."""
        return tuple(itertools.islice(self._active(), max(0, limit)))

    async def events(self, run_id: RunId, *, after: int = 0, limit: int = 1000) -> Sequence[Event]:
        """See the port."""
        start = max(0, after)
        return tuple(self._record(run_id).events[start : start + max(0, limit)])

    async def document(self, run_id: RunId) -> Document:
        """See the port."""
        return self._record(run_id).document

    async def plan(self, run_id: RunId) -> str:
        """See the port."""
        record = self._record(run_id)
        if record.run.state.is_terminal:
            raise transitions.plan_forgotten(record.run)
        return record.plan

    async def fingerprint(self, run_id: RunId) -> Fingerprint | None:
        """See the port."""
        return self._record(run_id).fingerprint

    async def summaries(self, run_id: RunId) -> Sequence[Summary]:
        """See the port."""
        return self._record(run_id).summaries

    async def delete(self, run_id: RunId) -> None:
        """See the port."""
        transitions.check_ended(self._record(run_id).run)
        del self._records[run_id]
        self._ids.remove(run_id)
        self._feed = [event for event in self._feed if event.run_id != run_id]
        self._changes += 1

    async def benchmarks(self, *, after: str = "", limit: int = 50) -> Sequence[Group]:
        """See the port."""
        return _groups(((run.benchmark, run.id) for run in self._oldest_first()), after, limit)

    async def families(self, *, after: str = "", limit: int = 50) -> Sequence[Group]:
        """See the port."""
        named = ((run.family, run.id) for run in self._oldest_first() if run.family is not None)
        return _groups(named, after, limit)

    async def trend(self, query: TrendQuery) -> Sequence[TrendPoint]:
        """See the port."""
        succeeded = RunQuery(
            states={RunState.SUCCEEDED},
            benchmark=query.benchmark,
            before=query.before,
            limit=query.limit,
        )
        return tuple(
            _point(run, summary)
            for run in await self.page(succeeded)
            for summary in self._records[run.id].summaries
            if summary.key.name == query.metric and query.unit in (None, summary.key.unit)
        )

    async def feed(self, *, after: int, limit: int = 1000) -> Sequence[Event]:
        """See the port."""
        start = bisect.bisect_right(self._feed, after, key=lambda event: event.sequence)
        return tuple(self._feed[start : start + max(0, limit)])

    async def last_sequence(self) -> int:
        """See the port."""
        return self._sequence

    def change_token(self) -> int:
        """See the port."""
        return self._changes

    def _record(self, run_id: RunId) -> _Record:
        record = self._records.get(run_id)
        if record is None:
            raise transitions.not_found(run_id)
        return record

    def _keyed(self, submitter: str, key: str | None) -> Run | None:
        if key is None:
            return None
        records = self._records.values()
        mine = (each.run for each in records if (each.run.submitter, each.key) == (submitter, key))
        return next(mine, None)

    def _note(self, record: _Record, events: Sequence[NewEvent]) -> None:
        for new in events:
            self._sequence += 1
            event = Event(
                run_id=record.run.id,
                number=len(record.events) + 1,
                sequence=self._sequence,
                at=new.at,
                kind=new.kind,
                message=new.message,
                data=dict(new.data),
            )
            record.events.append(event)
            self._feed.append(event)

    def _put(self, run: Run) -> Run:
        self._records[run.id].run = run
        self._changes += 1
        return run

    def _oldest_first(self) -> Iterator[Run]:
        return (self._records[run_id].run for run_id in self._ids)

    def _active(self) -> Iterator[Run]:
        return (run for run in self._oldest_first() if not run.state.is_terminal)

    def _free(self, now: datetime, states: Collection[RunState]) -> Iterator[Run]:
        return (
            run
            for run in self._active()
            if run.state in states and (run.lease is None or run.lease.ends < now)
        )

    def _held_by(self, worker: WorkerId) -> Sequence[Run]:
        return [run for run in self._active() if run.lease and run.lease.worker == worker]


def _matches(run: Run, query: RunQuery) -> bool:
    return (
        (not query.states or run.state in query.states)
        and (query.benchmark is None or run.benchmark == query.benchmark)
        and (query.family is None or run.family == query.family)
        and (query.submitter is None or run.submitter == query.submitter)
        and set(query.labels) <= set(run.labels)
    )


def _groups(named: Iterator[tuple[str, RunId]], after: str, limit: int) -> tuple[Group, ...]:
    members: dict[str, list[RunId]] = {}
    for name, run_id in named:
        members.setdefault(name, []).append(run_id)
    names = sorted(name for name in members if name > after)
    return tuple(
        Group(name=name, runs=min(len(members[name]), MOST_COUNTED), newest=members[name][-1])
        for name in names[: max(0, limit)]
    )


def _point(run: Run, summary: Summary) -> TrendPoint:
    return TrendPoint(
        run_id=run.id, state=run.state, submitted_at=run.submitted_at, summary=summary
    )


def _ordered(summaries: Sequence[Summary]) -> tuple[Summary, ...]:
    by_key = {(each.key.unit, each.key.source.value, each.key.name): each for each in summaries}
    return tuple(by_key[key] for key in sorted(by_key))
