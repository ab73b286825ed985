"""The schedule store port over a SQLite database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from anubis.adapters.schedule_store import rules
from anubis.adapters.schedule_store.sqlite import changes, reading
from anubis.adapters.sqlite import Database
from anubis.domain.document import Document
from anubis.domain.event import NewEvent
from anubis.domain.schedule import Schedule, ScheduleId
from anubis.ports.schedule_store import ScheduleEvent, ScheduleQuery


class SqliteScheduleStore:
    """Schedules in a database that other stores and other processes may use at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, schedule: Schedule, document: Document, message: str, *, key: str | None = None
    ) -> Schedule:
        """See the port."""
        rules.check_new(schedule, document)
        new = changes.New(schedule=schedule, document=document, message=message, key=key)
        return await self._database.do(changes.add(new))

    async def with_key(self, submitter: str, key: str) -> Schedule | None:
        """See the port."""
        return self._database.read(reading.with_key, submitter, key)

    async def count_of(self, submitter: str, *, limit: int) -> int:
        """See the port."""
        return self._database.read(reading.count_of, submitter, limit)

    async def get(self, schedule_id: ScheduleId) -> Schedule:
        """See the port."""
        return self._database.read(reading.schedule, schedule_id)

    async def resolve(self, reference: str) -> ScheduleId:
        """See the port."""
        return self._database.read(reading.resolve, reference)

    async def page(self, query: ScheduleQuery) -> Sequence[Schedule]:
        """See the port."""
        return self._database.read(reading.page, query)

    async def document(self, schedule_id: ScheduleId) -> Document:
        """See the port."""
        return self._database.read(reading.document, schedule_id)

    async def scripts(self) -> Collection[str]:
        """See the port."""
        return self._database.read(reading.scripts)

    async def due(self, now: datetime, *, limit: int) -> Sequence[Schedule]:
        """See the port."""
        return self._database.read(reading.due, now, limit)

    async def next_due(self) -> datetime | None:
        """See the port."""
        return self._database.read(reading.next_due)

    async def replace(
        self, schedule: Schedule, *, events: Sequence[NewEvent] = ()
    ) -> Schedule | None:
        """See the port."""
        return await self._database.do(changes.replace(schedule, events))

    async def events(
        self, schedule_id: ScheduleId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[ScheduleEvent]:
        """See the port."""
        return self._database.read(reading.events, schedule_id, after, limit)

    async def delete(self, schedule_id: ScheduleId) -> None:
        """See the port."""
        await self._database.do(changes.delete(schedule_id))
