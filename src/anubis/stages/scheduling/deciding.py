"""Decide what becomes of the firings of a schedule that are due.

First the *catch-up* policy: firings more than ``GRACE`` late were missed, because nobody was there
to fire them or because the clock was set forward. Then the *overlap* policy, which looks at runs of
the schedule that have not ended. It always holds, also among firings that are made up for together:
``skip`` and ``cancel_previous`` let at most one of them become a run, the latest.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from anubis.domain import identity
from anubis.domain.run import RunId
from anubis.domain.schedule import MOST_CAUGHT_UP, CatchUp, Overlap, Schedule, ScheduleId
from anubis.stages.scheduling import occurrences

GRACE = timedelta(seconds=60)
"""How late a firing may be and still count as on time. A runtime that is there fires within a
second; one that has to be started, or a machine under load, may take some more."""

SET_BACK = timedelta(hours=1)
"""A clock that was set back further than this was wrong before: see ``mended``. Less is corrected
by waiting, so that no firing comes twice."""

_FIRST_LOOK = timedelta(hours=4)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Due:
    """The firings that are due, earliest first; of very many only the latest."""

    moments: tuple[datetime, ...]
    is_complete: bool  #: whether there were no others


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What the store knows about the runs of a schedule."""

    begun: frozenset[datetime] = frozenset()
    """Firings that have a run, though the schedule does not know: whoever submitted them died, or
    is about to say so."""
    is_busy: bool = False  #: whether other runs of it have not ended


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What becomes of the due firings."""

    firings: tuple[datetime, ...]  #: each becomes a run, or is one already
    missed: tuple[datetime, ...]  #: left out because they came too late
    overlapping: tuple[datetime, ...]  #: left out because of another run
    is_complete: bool  #: whether more were missed, longer ago
    cancels_others: bool  #: whether other runs of the schedule are canceled
    next_at: datetime | None


def firing_id(schedule_id: ScheduleId, moment: datetime) -> RunId:
    """The id of the run of one firing: the same whoever makes it, however often."""
    name = f"{schedule_id} {moment.isoformat()}"
    return identity.run_id(moment, hashlib.sha256(name.encode()).digest()[:8])


def due(schedule: Schedule, now: datetime) -> Due:
    """What should have fired by ``now``. Cost does not grow with the time that has passed."""
    first = schedule.next_at
    assert first is not None, "only a schedule with a next firing can be due"
    look = _FIRST_LOOK
    while True:
        start = max(first, now - look)
        later = occurrences.occurrences(schedule.cron, schedule.time_zone, after=start)
        found = list(itertools.takewhile(lambda moment: moment <= now, later))
        if start == first:  # whatever cron says today, it was promised for that moment
            return Due(moments=(first, *found)[-MOST_CAUGHT_UP:], is_complete=True)
        if len(found) >= MOST_CAUGHT_UP:
            return Due(moments=tuple(found[-MOST_CAUGHT_UP:]), is_complete=False)
        look *= 4


def decide(schedule: Schedule, waiting: Due, standing: Standing, now: datetime) -> Decision:
    """Apply the policies of the schedule to what is due."""
    wanted = _caught_up(schedule.catch_up, waiting.moments, now)
    chosen = _without_overlap(schedule.overlap, wanted, standing)
    firings = tuple(one for one in waiting.moments if one in standing.begun or one in chosen)
    left_out = [one for one in waiting.moments if one not in firings]
    return Decision(
        firings=firings,
        missed=tuple(one for one in left_out if one not in wanted),
        overlapping=tuple(one for one in left_out if one in wanted),
        is_complete=waiting.is_complete,
        cancels_others=schedule.overlap is Overlap.CANCEL_PREVIOUS and bool(firings),
        next_at=next_at(schedule, now),
    )


def next_at(schedule: Schedule, now: datetime) -> datetime | None:
    """When a schedule that has nothing due fires next."""
    return occurrences.following(schedule.cron, schedule.time_zone, after=now)


def mended(schedule: Schedule, now: datetime) -> datetime | None:
    """When a schedule should fire next whose next firing was set by a clock that ran far ahead.

    None if all is well. It is not if the schedule has done with a moment that is more than
    ``SET_BACK`` ahead of us.
    """
    if schedule.next_at is None:
        return None
    ahead = next_at(schedule, now + SET_BACK)
    return next_at(schedule, now) if ahead is not None and ahead < schedule.next_at else None


def _caught_up(policy: CatchUp, moments: Sequence[datetime], now: datetime) -> Collection[datetime]:
    on_time = [moment for moment in moments if now - moment <= GRACE]
    if policy is CatchUp.ALL or len(on_time) == len(moments):
        return moments
    # One run makes up for all that was missed; a firing that is on time does that as well.
    return on_time or (moments[-1:] if policy is CatchUp.LAST else ())


def _without_overlap(
    policy: Overlap, wanted: Collection[datetime], standing: Standing
) -> Collection[datetime]:
    if policy is Overlap.QUEUE or not wanted:
        return wanted
    if policy is Overlap.SKIP and (standing.is_busy or standing.begun):
        return ()
    return (max(wanted),)
