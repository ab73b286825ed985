"""The run store port over a SQLite database."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime, timedelta

from anubis.adapters.run_store import transitions
from anubis.adapters.run_store.sqlite import changes, history, paging, queueing, reading
from anubis.adapters.sqlite import Database
from anubis.domain.document import Document, Fingerprint
from anubis.domain.event import Event
from anubis.domain.metric import Summary
from anubis.domain.run import Run, RunId, RunState, WorkerId
from anubis.ports.history import Group, TrendPoint, TrendQuery
from anubis.ports.run_reader import RunQuery
from anubis.ports.run_store import Step


class SqliteRunStore:
    """Runs in a database that other stores and other processes may use at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, path: pathlib.Path) -> AsyncIterator[SqliteRunStore]:
        """Open a database at ``path`` for runs alone; see ``Database.open``."""
        async with Database.open(path) as database:
            yield cls(database)

    async def add(
        self, run: Run, document: Document, plan: str, message: str, *, key: str | None = None
    ) -> Run:
        """See the port."""
        transitions.check_new(run, document)
        new = changes.Submission(run=run, document=document, plan=plan, message=message, key=key)
        return await self._database.do(changes.add(new))

    async def get(self, run_id: RunId) -> Run:
        """See the port."""
        return self._database.read(reading.run, run_id)

    async def resolve(self, reference: str) -> RunId:
        """See the port."""
        return self._database.read(reading.resolve, reference)

    async def page(self, query: RunQuery) -> Sequence[Run]:
        """See the port. Several filters together may take long, and then do so in a thread."""
        if paging.is_quick(query):
            return self._database.read(paging.page, query)
        return await self._database.read_apart(paging.page, query)

    async def counts(self) -> Mapping[RunState, int]:
        """See the port."""
        return self._database.read(reading.counts)

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
        """See the port. Looks before it asks, so that idle workers never take the write lock."""
        wanted = reading.Wanted(
            now=now, states=states, limit=limit, urgent_only=urgent_only, among=among
        )
        if not self._database.read(reading.free_ids, wanted):
            return ()
        return await self._database.do(changes.lease(worker, wanted, duration))

    async def renew(
        self, worker: WorkerId, run_ids: Collection[RunId], *, now: datetime, duration: timedelta
    ) -> frozenset[RunId]:
        """See the port."""
        if not run_ids:
            return frozenset()
        return await self._database.do(changes.renew(worker, run_ids, now + duration))

    async def urgent(self, worker: WorkerId, *, now: datetime) -> Sequence[Run]:
        """See the port."""
        return self._database.read(reading.urgent, worker, now)

    async def release_all(self, worker: WorkerId) -> None:
        """See the port."""
        await self._database.do(changes.release_all(worker))

    async def apply(self, worker: WorkerId, step: Step) -> Run:
        """See the port."""
        return await self._database.do(changes.apply(worker, step))

    async def request_cancel(self, run_id: RunId, *, now: datetime, by: str) -> Run:
        """See the port."""
        return await self._database.do(changes.request_cancel(run_id, now, by))

    async def heads(
        self, *, now: datetime, states: Collection[RunState], each: int
    ) -> Sequence[Run]:
        """See the port."""
        return self._database.read(queueing.heads, now, states, each)

    async def ahead(self, run: Run, *, states: Collection[RunState], limit: int) -> int:
        """See the port."""
        return self._database.read(queueing.ahead, run, states, limit)

    async def active_of(self, submitter: str, *, limit: int) -> int:
        """See the port."""
        return self._database.read(queueing.active_of, submitter, limit)

    async def with_key(self, submitter: str, key: str) -> Run | None:
        """See the port."""
        return self._database.read(reading.run_by_key, submitter, key)

    async def active(self, limit: int) -> Sequence[Run]:
        """See the port."""
        return self._database.read(reading.active, limit)

    async def events(self, run_id: RunId, *, after: int = 0, limit: int = 1000) -> Sequence[Event]:
        """See the port."""
        return self._database.read(reading.events, run_id, after, limit)

    async def document(self, run_id: RunId) -> Document:
        """See the port."""
        return self._database.read(reading.document, run_id)

    async def plan(self, run_id: RunId) -> str:
        """See the port."""
        return self._database.read(reading.plan, run_id)

    async def fingerprint(self, run_id: RunId) -> Fingerprint | None:
        """See the port."""
        return self._database.read(reading.fingerprint, run_id)

    async def summaries(self, run_id: RunId) -> Sequence[Summary]:
        """See the port."""
        return self._database.read(reading.summaries, run_id)

    async def delete(self, run_id: RunId) -> None:
        """See the port."""
        await self._database.do(changes.delete(run_id))

    async def benchmarks(self, *, after: str = "", limit: int = 50) -> Sequence[Group]:
        """See the port. Counting may take long, and then does so in a thread."""
        return await self._database.read_apart(history.benchmarks, after, limit)

    async def families(self, *, after: str = "", limit: int = 50) -> Sequence[Group]:
        """See the port. Counting may take long, and then does so in a thread."""
        return await self._database.read_apart(history.families, after, limit)

    async def trend(self, query: TrendQuery) -> Sequence[TrendPoint]:
        """See the port."""
        return self._database.read(history.trend, query)

    async def feed(self, *, after: int, limit: int = 1000) -> Sequence[Event]:
        """See the port."""
        return self._database.read(history.feed, after, limit)

    async def last_sequence(self) -> int:
        """See the port."""
        return self._database.read(history.last_sequence)

    def change_token(self) -> int:
        """See the port. Our own writer has its own connection, so its commits count too."""
        return self._database.read(reading.data_version)
