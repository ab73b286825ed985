"""Remember schedules, and let each firing be decided once."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from anubis.domain.document import Document
from anubis.domain.event import EventKind, NewEvent
from anubis.domain.schedule import Schedule, ScheduleId


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleQuery:
    """Which schedules, newest first. Every filter given must hold."""

    submitter: str | None = None
    before: ScheduleId | None = None  #: keyset cursor
    limit: int = 50


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleEvent:
    """Something that happened to a schedule. Numbers start at 1 and have no gaps within it."""

    schedule_id: ScheduleId
    number: int
    at: datetime
    kind: EventKind
    message: str
    run_id: str | None = None  #: the run it is about, e.g. the one that was fired


class ScheduleStore(Protocol):
    """Methods are atomic and safe against concurrent processes. Every method may raise
    StoreUnavailable; retrying is safe. Methods about one schedule raise ScheduleNotFound.
    """

    async def add(
        self, schedule: Schedule, document: Document, message: str, *, key: str | None = None
    ) -> Schedule:
        """Store a new schedule with its document and first event; gives it as it is stored. Adding
        an id again that is there with the same descriptor changes nothing.

        A ``key`` is chosen by the submitter for one submission: if they have a schedule with it,
        nothing is stored and that one is given. NotPossible if its descriptor is another.
        """
        ...

    async def with_key(self, submitter: str, key: str) -> Schedule | None:
        """The schedule that somebody has with this key."""
        ...

    async def count_of(self, submitter: str, *, limit: int) -> int:
        """How many schedules somebody has; ``limit`` stands for that many or more."""
        ...

    async def get(self, schedule_id: ScheduleId) -> Schedule:
        """Give the schedule as stored."""
        ...

    async def resolve(self, reference: str) -> ScheduleId:
        """Find the schedule meant by a full id, a unique prefix, or the name of a benchmark that
        has only one. Raises ScheduleNotFound, or ScheduleAmbiguous, whose message names candidates.
        """
        ...

    async def page(self, query: ScheduleQuery) -> Sequence[Schedule]:
        """Give at most ``query.limit`` schedules, newest first."""
        ...

    async def document(self, schedule_id: ScheduleId) -> Document:
        """The exact descriptor of a schedule."""
        ...

    async def scripts(self) -> Collection[str]:
        """The archives of code that the documents of all schedules name."""
        ...

    async def due(self, now: datetime, *, limit: int) -> Sequence[Schedule]:
        """Schedules whose ``next_at`` is not later than ``now``, the earliest first."""
        ...

    async def next_due(self) -> datetime | None:
        """When the next schedule fires; None if none will."""
        ...

    async def replace(
        self, schedule: Schedule, *, events: Sequence[NewEvent] = ()
    ) -> Schedule | None:
        """Store a changed schedule and what happened, if nobody else changed it since it was read:
        its stored version must be ``schedule.version``. Gives the schedule with its new version,
        or None if somebody was first (nothing is stored then). An event whose data has ``run``
        becomes one about that run.
        """
        ...

    async def events(
        self, schedule_id: ScheduleId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[ScheduleEvent]:
        """Events with a number above ``after``, in order."""
        ...

    async def delete(self, schedule_id: ScheduleId) -> None:
        """Forget a schedule. Runs that it fired stay."""
        ...
