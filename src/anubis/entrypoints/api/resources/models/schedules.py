"""Schedules: descriptors that run again and again."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from anubis.domain.event import EventKind
from anubis.domain.schedule import CatchUp, Overlap
from anubis.entrypoints.api.resources.models.kinds import Answer, Filters, Line
from anubis.entrypoints.api.resources.models.problems import DescriptorProblem
from anubis.entrypoints.api.resources.models.runs import LARGEST_PAGE, Cursor


class Schedule(Answer):
    """When to run which descriptor."""

    id: str
    """A UUID of version 7; the family of every run that it fires."""
    benchmark: str
    cron: str
    time_zone: str
    """An IANA name; cron's hours are hours there."""
    overlap: Overlap
    """What happens when a firing is due while a run of the one before goes on."""
    catch_up: CatchUp
    """What happens with firings that were due while nobody was there."""
    engine: str
    priority: int
    descriptor_sha: str
    submitter: str
    created_at: datetime
    paused_at: datetime | None
    next_at: datetime | None
    """When it fires next; null: never, or paused."""
    last_at: datetime | None
    last_run: str | None
    last_note: str
    """What happened at the last firing."""
    fired: int
    """How many runs it has submitted."""
    version: int


class ScheduleDetails(Schedule):
    """A schedule and its next firings."""

    upcoming: list[datetime]


class Scheduled(Answer):
    """A schedule that is now durable, and what its author should know."""

    schedule: Schedule
    warnings: list[DescriptorProblem]


class SchedulePage(Answer):
    """Some schedules, newest first."""

    schedules: list[Schedule]
    next: str | None
    """The ``cursor`` of the next page; null: this is the last one."""


class ScheduleEvent(Answer):
    """Something that happened to a schedule."""

    schedule: str
    number: int
    """Its place within the schedule, from 1, without gaps."""
    at: datetime
    kind: EventKind
    message: str
    run: str | None
    """The run it is about."""


class ScheduleEventPage(Answer):
    """Some events of a schedule, in order."""

    events: list[ScheduleEvent]
    next: int | None
    """``after`` of the next page; null: there are no more now."""


class ScheduleFilters(Filters):
    """Which schedules."""

    user: Line | None = Field(None, examples=["ada"])
    """Only schedules that this user made."""
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = Field(50, examples=[20])
    """How many at most."""
    cursor: Cursor | None = Field(None, examples=["018f8583-4a00-7000-9fec-f0f8a0d2f3a7"])
    """``next`` of the page before."""
