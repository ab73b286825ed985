"""Something that happened to a run. Append-only, ordered per run, never changed."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from datetime import datetime

from anubis.domain.run import RunId

Scalar = str | int | float | bool | None


class EventKind(enum.StrEnum):
    """What sort of thing happened."""

    STATE = "state"  #: the run moved; ``data["from"]``, ``data["to"]``
    CANCEL_REQUESTED = "cancel_requested"  #: somebody wants it to stop; ``data["by"]``
    WARNING = "warning"  #: the run goes on, but a person should know
    NOTE = "note"  #: of interest, needs no action


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class NewEvent:
    """An event before the store has given it its number."""

    at: datetime
    kind: EventKind
    message: str  #: a sentence for people
    data: Mapping[str, Scalar] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """A stored event. Numbers start at 1 and have no gaps within a run."""

    run_id: RunId
    number: int
    sequence: int  #: its place among all events of the store: grows in the order of storing
    at: datetime
    kind: EventKind
    message: str
    data: Mapping[str, Scalar] = dataclasses.field(default_factory=dict)
