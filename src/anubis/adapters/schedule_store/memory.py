"""Schedules in plain dictionaries. Product code, not a mock: it keeps every promise of the port
except surviving the process. No method awaits anything, so each is atomic on its event loop.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime

from anubis.adapters.schedule_store import rules
from anubis.domain.document import Document
from anubis.domain.event import NewEvent
from anubis.domain.schedule import Schedule, ScheduleId
from anubis.ports.schedule_store import ScheduleEvent, ScheduleQuery


@dataclasses.dataclass(kw_only=True, slots=True)
class _Record:
    """All that is kept about one schedule."""

    schedule: Schedule
    document: Document
    key: str | None
    events: list[ScheduleEvent] = dataclasses.field(default_factory=list)

    def note(self, events: Sequence[NewEvent]) -> None:
        self.events += rules.numbered(self.schedule.id, len(self.events), events)


class MemoryScheduleStore:
    """A schedule store that lives and dies with its process."""

    def __init__(self) -> None:
        self._records: dict[ScheduleId, _Record] = {}

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls) -> AsyncIterator[MemoryScheduleStore]:
        """Give an empty store; there to be exchangeable with stores that must be closed."""
        yield cls()

    async def add(
        self, schedule: Schedule, document: Document, message: str, *, key: str | None = None
    ) -> Schedule:
        """See the port."""
        rules.check_new(schedule, document)
        if (stored := self._records.get(schedule.id)) is not None:
            rules.check_same(stored.schedule, schedule)
            return stored.schedule
        if key is not None and (keyed := await self.with_key(schedule.submitter, key)) is not None:
            rules.check_same_key(keyed, schedule, key)
            return keyed
        record = _Record(schedule=schedule, document=document, key=key)
        record.note([rules.first_event(schedule, message)])
        self._records[schedule.id] = record
        return schedule

    async def with_key(self, submitter: str, key: str) -> Schedule | None:
        """See the port."""
        keyed = (each.schedule for each in self._records.values() if each.key == key)
        return next((each for each in keyed if each.submitter == submitter), None)

    async def count_of(self, submitter: str, *, limit: int) -> int:
        """See the port."""
        return len(await self.page(ScheduleQuery(submitter=submitter, limit=limit)))

    async def get(self, schedule_id: ScheduleId) -> Schedule:
        """See the port."""
        return self._record(schedule_id).schedule

    async def resolve(self, reference: str) -> ScheduleId:
        """See the port."""
        asked = rules.reference(reference)
        fitting = [
            schedule
            for schedule in self._newest_first()
            if asked.start <= schedule.id < asked.end or schedule.benchmark == asked.text
        ]
        return rules.only(asked, fitting)

    async def page(self, query: ScheduleQuery) -> Sequence[Schedule]:
        """See the port."""
        fitting = [
            schedule
            for schedule in self._newest_first()
            if (query.submitter is None or schedule.submitter == query.submitter)
            and (query.before is None or schedule.id < query.before)
        ]
        return tuple(fitting[: max(0, query.limit)])

    async def document(self, schedule_id: ScheduleId) -> Document:
        """See the port."""
        return self._record(schedule_id).document

    async def scripts(self) -> Collection[str]:
        """See the port."""
        return {record.document.script for record in self._records.values()} - {""}

    async def due(self, now: datetime, *, limit: int) -> Sequence[Schedule]:
        """See the port."""
        ready = [(at, schedule) for at, schedule in self._by_next() if at <= now]
        return tuple(schedule for _, schedule in ready[: max(0, limit)])

    async def next_due(self) -> datetime | None:
        """See the port."""
        return next((at for at, _ in self._by_next()), None)

    async def replace(
        self, schedule: Schedule, *, events: Sequence[NewEvent] = ()
    ) -> Schedule | None:
        """See the port."""
        record = self._record(schedule.id)
        rules.check_same(record.schedule, schedule)
        if record.schedule.version != schedule.version:
            return None
        record.schedule = dataclasses.replace(schedule, version=schedule.version + 1)
        record.note(events)
        return record.schedule

    async def events(
        self, schedule_id: ScheduleId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[ScheduleEvent]:
        """See the port."""
        start = max(0, after)
        return tuple(self._record(schedule_id).events[start : start + max(0, limit)])

    async def delete(self, schedule_id: ScheduleId) -> None:
        """See the port."""
        self._record(schedule_id)
        del self._records[schedule_id]

    def _record(self, schedule_id: ScheduleId) -> _Record:
        record = self._records.get(schedule_id)
        if record is None:
            raise rules.not_found(schedule_id)
        return record

    def _newest_first(self) -> Sequence[Schedule]:
        return [self._records[each].schedule for each in sorted(self._records, reverse=True)]

    def _by_next(self) -> Sequence[tuple[datetime, Schedule]]:
        schedules = (record.schedule for record in self._records.values())
        timed = [(each.next_at, each) for each in schedules if each.next_at is not None]
        return sorted(timed, key=lambda pair: (pair[0], pair[1].id))
