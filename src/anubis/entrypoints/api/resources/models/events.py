"""What happened."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from anubis.domain.event import EventKind
from anubis.entrypoints.api.resources.models.kinds import LARGEST, Answer, Filters


class Event(Answer):
    """Something that happened to a run."""

    number: int
    """Its place within the run, from 1, without gaps."""
    sequence: int
    """Its place among all events: the ``id`` in streams."""
    run: str
    at: datetime
    kind: EventKind
    message: str
    """A sentence for people."""
    data: dict[str, str | int | float | bool | None]
    """``from`` and ``to`` of a change of state, for instance."""


class EventPage(Answer):
    """Some events, in order."""

    events: list[Event]
    next: int | None
    """``after`` of the next page; null: there are no more now."""


class EventFilters(Filters):
    """Which events of a run."""

    after: Annotated[int, Field(ge=0, le=LARGEST)] = Field(0, examples=[0])
    """Only events with a higher number."""
    limit: Annotated[int, Field(ge=1, le=1000)] = Field(500, examples=[100])
    """How many at most."""


class FeedFilters(Filters):
    """Which events of all runs."""

    after: Annotated[int, Field(ge=0, le=LARGEST)] = Field(0, examples=[0])
    """Only events with a higher sequence."""
    limit: Annotated[int, Field(ge=1, le=1000)] = Field(500, examples=[100])
    """How many at most."""


class StreamStart(Filters):
    """Where a stream begins."""

    after: Annotated[int, Field(ge=0, le=LARGEST)] | None = Field(None, examples=[0])
    """Only events with a higher sequence. ``Last-Event-ID`` wins."""
