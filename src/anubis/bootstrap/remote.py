"""The application over a service: the same calls, answered elsewhere.

RemoteApplication ── Client ──HTTP──► service ── LocalApplication

Who asks is known to the service, by token or by header, so ``by`` goes nowhere. The environment of
the shell is not sent: runs have what the service gives to all.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from anubis.adapters.clock.system import SystemClock
from anubis.bootstrap.application import Manifested, Planned, Scheduled, Submission, Submitted
from anubis.client import Client, Health, Manner, Me, Policy, Wishes
from anubis.client.datasets import DatasetsClient
from anubis.client.scripts import ScriptsClient
from anubis.client.series import SeriesClient
from anubis.domain.access import Role, Token, TokenId
from anubis.domain.document import Document
from anubis.domain.run import BEFORE_START, Run, RunId
from anubis.domain.schedule import Schedule, ScheduleId
from anubis.ports.clock import Clock
from anubis.ports.schedule_store import ScheduleEvent, ScheduleQuery
from anubis.settings import original
from anubis.settings.registering import Connection
from anubis.stages.access.tokens import Issued
from anubis.stages.presentation.watching import Snapshot

if TYPE_CHECKING:
    from anubis.stages.descriptor.parsing import Parsed


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RemoteSchedules:
    """The schedules of a service. See ``Schedules`` for what its calls promise."""

    client: Client
    home: Path

    async def add(self, submission: Submission) -> Scheduled:
        """Store a schedule."""
        added = await self.client.schedules.add(submission.document, _wishes(submission))
        schedule = added.schedule
        original.remember_action(
            self.home, schedule.id, _path(submission.document), schedule.created_at
        )
        return Scheduled(schedule=schedule, warnings=added.warnings)

    async def get(self, schedule_id: ScheduleId) -> Schedule:
        """Give a schedule."""
        return await self.client.schedules.get(schedule_id)

    async def resolve(self, reference: str) -> ScheduleId:
        """Find the schedule meant."""
        return await self.client.schedules.resolve(reference)

    async def page(self, query: ScheduleQuery) -> Sequence[Schedule]:
        """Give schedules, newest first."""
        return await self.client.schedules.page(query)

    async def document(self, schedule_id: ScheduleId) -> Document:
        """The exact descriptor of a schedule."""
        return await self.client.schedules.document(schedule_id)

    async def events(
        self, schedule_id: ScheduleId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[ScheduleEvent]:
        """What happened to a schedule, in order."""
        return await self.client.schedules.events(schedule_id, after=after, limit=limit)

    async def upcoming(self, schedule_id: ScheduleId, *, count: int) -> Sequence[datetime]:
        """The next firings, as many as the service tells of."""
        return (await self.client.schedules.upcoming(schedule_id))[:count]

    async def pause(self, schedule_id: ScheduleId, *, by: str) -> Schedule:  # noqa: ARG002 - the service knows who asks
        """Let nothing fire until it is resumed."""
        return await self.client.schedules.pause(schedule_id)

    async def resume(self, schedule_id: ScheduleId, *, by: str) -> Schedule:  # noqa: ARG002 - as above
        """Let it fire again, from now on."""
        return await self.client.schedules.resume(schedule_id)

    async def run_now(self, schedule_id: ScheduleId, *, by: str) -> Run:  # noqa: ARG002 - as above
        """Submit a run of it now."""
        return await self.client.schedules.run_now(schedule_id)

    async def remove(self, schedule_id: ScheduleId, *, by: str) -> None:  # noqa: ARG002 - as above
        """Forget it."""
        await self.client.schedules.remove(schedule_id)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RemoteApplication:
    """One installation elsewhere. See ``Application`` for what its calls promise."""

    client: Client
    home: Path  #: of this machine: where the original client keeps what was submitted
    clock: Clock

    @property
    def store(self) -> Client:
        """Its runs."""
        return self.client

    @property
    def logs(self) -> Client:
        """Their output."""
        return self.client

    @property
    def series(self) -> SeriesClient:
        """Their samples."""
        return self.client.series

    @property
    def schedules(self) -> RemoteSchedules:
        """All that can be done with schedules."""
        return RemoteSchedules(client=self.client, home=self.home)

    @property
    def scripts(self) -> ScriptsClient:
        """Where code is left that documents name as their ``script``."""
        return self.client.scripts

    @property
    def datasets(self) -> DatasetsClient:
        """All that can be done with datasets."""
        return self.client.datasets

    def validate(self, document: Document) -> Parsed:
        """Read a descriptor here; the service reads it again."""
        # Here and not above: only a few commands read descriptors.
        from anubis.stages.descriptor import parsing

        return parsing.parse(document)

    async def plan(self, submission: Submission) -> Planned:
        """Ask the service, whose engines decide."""
        planned = await self.client.plan(submission.document, _wishes(submission))
        return Planned(plan=planned.plan, warnings=planned.warnings)

    async def manifest(self, submission: Submission, namespace: str) -> Manifested:
        """Ask the service, whose cluster it is."""
        found = await self.client.manifest(submission.document, namespace)
        return Manifested(objects=found.objects, notes=found.notes, warnings=found.warnings)

    async def submit(self, submission: Submission) -> Submitted:
        """Have the service store a run."""
        made = await self.client.submit(submission.document, _wishes(submission))
        path = _path(submission.document)
        original.remember_action(self.home, made.run.id, path, made.run.submitted_at)
        return Submitted(run=made.run, warnings=made.warnings)

    async def waiting(self, run: Run) -> str:
        """Why a run has not started."""
        return await self.client.waiting(run.id) if run.state in BEFORE_START else ""

    async def waitings(self, runs: Sequence[Run]) -> Mapping[RunId, str]:
        """Why those of these runs that wait do so."""
        waiting = [run.id for run in runs if run.state in BEFORE_START]
        return await self.client.waitings(waiting)

    async def known_as(self, person: str) -> str:  # noqa: ARG002 - the service knows who asks
        """Under which name what we submit is kept."""
        return (await self.client.me()).user

    def watch(self, run_id: RunId) -> AsyncGenerator[Snapshot, None]:
        """Follow a run to its end, over restarts of the service."""
        return self.client.watch(run_id)

    async def cancel(self, run_id: RunId, *, by: str) -> Run:  # noqa: ARG002 - as above
        """Ask for a run to be stopped."""
        return await self.client.cancel(run_id)

    async def purge(self, run_id: RunId, *, by: str) -> None:  # noqa: ARG002 - as above
        """Forget a run with all it produced."""
        await self.client.purge(run_id)

    async def ensure_runtime(self) -> None:
        """A service carries its runs by itself."""


@contextlib.asynccontextmanager
async def application(
    connection: Connection, home: Path, person: str, notify: Callable[[str], None]
) -> AsyncIterator[RemoteApplication]:
    """Open the application of a service. Nothing is asked before the first call.

    ``notify`` is told when a service that was there goes away, and when it is back.
    """
    async with client(connection, person, Manner(notify=notify)) as opened:
        yield RemoteApplication(client=opened, home=home, clock=SystemClock())


def client(connection: Connection, person: str, manner: Manner | None = None) -> Client:
    """A client for the service that commands ask."""
    return Client(
        connection.endpoint,
        token=connection.token,
        user=person,
        verify=connection.ca_file or True,
        manner=manner,
    )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RemoteTokens:
    """The tokens of a service; it puts on record who did what."""

    client: Client
    clock: Clock

    async def create(
        self, user: str, role: Role, *, note: str = "", days: int | None = None
    ) -> Issued:
        """Have the service make a token."""
        return await self.client.tokens.create(user, role, note=note, days=days)

    async def all(self) -> Sequence[Token]:
        """Every token, newest first, without secrets."""
        return await self.client.tokens.all()

    async def revoke(self, token_id: TokenId) -> Token:
        """Make a token open nothing any more."""
        return await self.client.tokens.revoke(token_id)


@contextlib.asynccontextmanager
async def tokens(connection: Connection, person: str) -> AsyncIterator[RemoteTokens]:
    """Open the tokens of a service."""
    async with client(connection, person) as opened:
        yield RemoteTokens(client=opened, clock=SystemClock())


async def introduced(connection: Connection, person: str) -> tuple[Health, Me]:
    """How the service is and as whom it sees us, asked once. Raises ServiceUnavailable."""
    once = Manner(policy=Policy(patience=timedelta()))
    async with client(connection, person, once) as opened:
        health = await opened.health()
        me = await opened.me()
        await opened.must_be_ready()
        return health, me


def _wishes(submission: Submission) -> Wishes:
    return Wishes(
        engine=submission.engine,
        priority=submission.priority,
        now=submission.wants_it_now,
        key=submission.key,
    )


def _path(document: Document) -> str:
    return str(PurePath(document.directory, PurePath(document.name).name))
