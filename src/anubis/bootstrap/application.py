"""What a user can ask of Anubis: the calls behind every command and every route.

``LocalApplication`` answers them from the home directory of this machine, ``RemoteApplication``
asks a service. Whoever calls need not know which of them it talks to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from anubis.domain.access import Role, Token, TokenId
from anubis.domain.dataset import Dataset, DatasetKey, Reference, Report
from anubis.domain.document import Document
from anubis.domain.problem import Problem
from anubis.domain.run import Run, RunId
from anubis.domain.schedule import Schedule, ScheduleId
from anubis.ports.clock import Clock
from anubis.ports.log_store import LogReader
from anubis.ports.run_reader import RunReader
from anubis.ports.schedule_store import ScheduleEvent, ScheduleQuery
from anubis.ports.script_store import ScriptInbox
from anubis.ports.series_store import SeriesReader
from anubis.stages.presentation.watching import Snapshot

if TYPE_CHECKING:
    from anubis.stages.access.tokens import Issued
    from anubis.stages.descriptor.parsing import Parsed
    from anubis.stages.presentation.plan_shapes import PlanShape


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    """What a user hands in."""

    document: Document
    submitter: str
    environment: Mapping[str, str]  #: of the shell it is submitted from, or of the service
    engine: str | None = None  #: wins over the descriptor
    priority: int | None = None  #: wins over the descriptor
    wants_it_now: bool = False  #: once and now, whatever the descriptor's schedule says
    key: str | None = None  #: chosen by the submitter: the same key never makes a second run


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Submitted:
    """A run that is now durable, and what its author should know about the descriptor."""

    run: Run
    warnings: tuple[Problem, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Scheduled:
    """A schedule that is now durable, and what its author should know about the descriptor."""

    schedule: Schedule
    warnings: tuple[Problem, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """What a run would be made of, and what its author should know about the descriptor."""

    plan: PlanShape
    warnings: tuple[Problem, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Manifested:
    """What Kubernetes would get for a run, and what its author should know."""

    objects: tuple[dict[str, object], ...]  #: in the order in which they would be applied
    notes: tuple[str, ...]  #: what is only supposed, since no cluster said it
    warnings: tuple[Problem, ...]


class Schedules(Protocol):
    """All that can be done with schedules. ``by`` is who asks, for the record."""

    async def add(self, submission: Submission) -> Scheduled:
        """Store a schedule. Raises DescriptorInvalid, or UserError if the descriptor has none."""
        ...

    async def get(self, schedule_id: ScheduleId) -> Schedule:
        """Give a schedule. Raises ScheduleNotFound."""
        ...

    async def resolve(self, reference: str) -> ScheduleId:
        """Find the schedule meant by an id, a prefix or a benchmark. Raises ScheduleNotFound."""
        ...

    async def page(self, query: ScheduleQuery) -> Sequence[Schedule]:
        """Give schedules, newest first."""
        ...

    async def document(self, schedule_id: ScheduleId) -> Document:
        """The exact descriptor of a schedule."""
        ...

    async def events(
        self, schedule_id: ScheduleId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[ScheduleEvent]:
        """What happened to a schedule, in order."""
        ...

    async def upcoming(self, schedule_id: ScheduleId, *, count: int) -> Sequence[datetime]:
        """The next firings; none while it is paused."""
        ...

    async def pause(self, schedule_id: ScheduleId, *, by: str) -> Schedule:
        """Let nothing fire until it is resumed. Pausing it again changes nothing."""
        ...

    async def resume(self, schedule_id: ScheduleId, *, by: str) -> Schedule:
        """Let it fire again, from now on. Resuming it again changes nothing."""
        ...

    async def run_now(self, schedule_id: ScheduleId, *, by: str) -> Run:
        """Submit a run of it now, as one more member of its family."""
        ...

    async def remove(self, schedule_id: ScheduleId, *, by: str) -> None:
        """Forget it. Its runs stay."""
        ...


class Datasets(Protocol):
    """The datasets of an installation, in its cache."""

    async def all(self) -> Sequence[Dataset]:
        """Every dataset, last used first."""
        ...

    async def get(self, key: str) -> Dataset:
        """The dataset with this key, or the only one whose key begins so.

        Raises DatasetNotFound, or UserError if several do.
        """
        ...

    async def add(self, reference: Reference, *, report: Report) -> Dataset:
        """Fetch a dataset, unless it is there. ``report`` is told how that goes on. Canceling the
        call stops the transfer.

        Raises DatasetInvalid, SourceUnavailable or StorageFull.
        """
        ...

    async def verify(self, key: DatasetKey) -> bool:
        """Read all of it again; False if it is not what was fetched, and then it is gone."""
        ...

    async def evict(self, key: DatasetKey) -> int:
        """Forget it; the bytes that became free. Raises NotPossible while a run uses it."""
        ...


class Tokens(Protocol):
    """The tokens of an installation."""

    @property
    def clock(self) -> Clock:
        """The time here."""
        ...

    async def create(
        self, user: str, role: Role, *, note: str = "", days: int | None = None
    ) -> Issued:
        """Make a token. Its secret is in this answer and nowhere else."""
        ...

    async def all(self) -> Sequence[Token]:
        """Every token, newest first, without secrets."""
        ...

    async def revoke(self, token_id: TokenId) -> Token:
        """Make a token open nothing any more. Raises TokenNotFound."""
        ...


class Application(Protocol):
    """One installation, ready for calls."""

    @property
    def clock(self) -> Clock:
        """The time here."""
        ...

    @property
    def store(self) -> RunReader:
        """Its runs."""
        ...

    @property
    def logs(self) -> LogReader:
        """Their output."""
        ...

    @property
    def series(self) -> SeriesReader:
        """Their samples."""
        ...

    @property
    def schedules(self) -> Schedules:
        """All that can be done with schedules."""
        ...

    @property
    def scripts(self) -> ScriptInbox:
        """Where code is left that documents name as their ``script``."""
        ...

    @property
    def datasets(self) -> Datasets:
        """All that can be done with datasets."""
        ...

    def validate(self, document: Document) -> Parsed:
        """Read a descriptor. Raises DescriptorInvalid with all its problems."""
        ...

    async def plan(self, submission: Submission) -> Planned:
        """What a run of this descriptor would be made of, whatever its schedule. Stores nothing,
        and does not need the code that the document names.

        Raises DescriptorInvalid, or UserError that names every field that stands in the way.
        """
        ...

    async def manifest(self, submission: Submission, namespace: str) -> Manifested:
        """What Kubernetes would get for a run of this descriptor, whatever its schedule and engine.
        Stores and applies nothing. ``namespace``: empty for the installation's.

        Raises DescriptorInvalid, or UserError that names every field that stands in the way.
        """
        ...

    async def submit(self, submission: Submission) -> Submitted:
        """Store a run. A descriptor with a schedule is an error unless it is wanted now, and so is
        an archive of code that was not left here before.
        """
        ...

    async def waiting(self, run: Run) -> str:
        """Why a run has not started, in a sentence; empty for one that has."""
        ...

    async def waitings(self, runs: Sequence[Run]) -> Mapping[RunId, str]:
        """The same for a page of runs; those that do not wait are left out."""
        ...

    async def known_as(self, person: str) -> str:
        """Under which name the runs of whoever sits here are kept."""
        ...

    def watch(self, run_id: RunId) -> AsyncGenerator[Snapshot, None]:
        """Follow a run to its end."""
        ...

    async def cancel(self, run_id: RunId, *, by: str) -> Run:
        """Ask for a run to be stopped. Raises NotPossible if it has ended."""
        ...

    async def purge(self, run_id: RunId, *, by: str) -> None:
        """Forget a run with all it produced; one that goes on is canceled first."""
        ...

    async def ensure_runtime(self) -> None:
        """See to it that somebody carries the runs that have not ended, and fires schedules."""
        ...
