"""A schedule: a descriptor that runs again and again, by cron. Each firing is a run of its own."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NewType

ScheduleId = NewType("ScheduleId", str)
"""A lower-case UUID, version 7. It is the family of every run the schedule fires, and the
``action_id`` of the submission on the old wire."""

CRON_FORMS: Mapping[str, str] = MappingProxyType(
    {
        "@yearly": "0 0 1 1 *",
        "@annually": "0 0 1 1 *",
        "@monthly": "0 0 1 * *",
        "@weekly": "0 0 * * 0",
        "@daily": "0 0 * * *",
        "@midnight": "0 0 * * *",
        "@hourly": "0 * * * *",
    },
)
"""Names for common schedules, and the five fields each stands for."""


class Overlap(enum.StrEnum):
    """What happens when a firing is due while a run of the firing before has not ended."""

    SKIP = "skip"  #: the firing is left out, and an event says so
    QUEUE = "queue"  #: the new run waits in the queue like any other
    CANCEL_PREVIOUS = "cancel_previous"  #: the older runs are canceled, the new one is submitted


class CatchUp(enum.StrEnum):
    """What happens with firings that were due while nobody was there to fire them."""

    NONE = "none"  #: they are left out
    LAST = "last"  #: only the latest of them is made up for
    ALL = "all"  #: each is made up for, up to ``MOST_CAUGHT_UP``


MOST_CAUGHT_UP = 100
"""A schedule of every minute that was down for a month must not submit 43,200 runs at once."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """When to run which descriptor. Never changed in place."""

    id: ScheduleId
    version: int  #: grows by one with every stored change
    benchmark: str
    cron: str  #: five fields, or one of ``CRON_FORMS``
    time_zone: str = "UTC"  #: an IANA name; cron's hours are hours there
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.LAST
    engine: str
    priority: int = 0
    descriptor_sha: str
    submitter: str
    created_at: datetime
    paused_at: datetime | None = None  #: while set, nothing fires and missed firings are dropped
    next_at: datetime | None = None  #: when it fires next; None: never (again), or paused
    last_at: datetime | None = None  #: the moment the last firing was due
    last_run: str | None = None  #: the run of the last firing that was not left out
    last_note: str = ""  #: what happened at the last firing, for people
    fired: int = 0  #: how many runs it has submitted in all

    @property
    def is_paused(self) -> bool:
        """Whether somebody asked it to pause."""
        return self.paused_at is not None
