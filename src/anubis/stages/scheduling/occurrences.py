"""When a schedule fires: moments in UTC, out of cron's five fields and a time zone.

Where clocks change for summer and winter we do what Debian's cron does, whose manual divides jobs
into two kinds:

*Jobs at fixed times*, with neither the minute nor the hour starting with ``*``, such as
``30 2 * * *``, fire once for every time they name. A time that is skipped in spring fires at the
first moment that exists after the gap, and a time that comes twice in autumn fires when it comes
first. Several skipped times fire once together.

*All other jobs*, such as ``*/15 * * * *`` or ``0 * * * *``, fire whenever the clock on the wall
shows a matching time, so they go on at their real interval while the clock is changed: nothing is
left out, nothing is doubled. (Hourly jobs on Lord Howe, where the clock moves by half an hour, wait
an hour and a half for the next full hour.)

cronsim computes the first kind. For the second it steps through the day by whole hours, which
misses times on a day when the clock moves by half an hour (Australia/Lord_Howe); so we let it walk
between two changes of the clock, where there is nothing to get wrong, and put the pieces together.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

from anubis.domain.errors import UserError
from anubis.domain.schedule import CRON_FORMS

_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)


def occurrences(cron: str, time_zone: str, *, after: datetime) -> Iterator[datetime]:
    """The moments after ``after`` at which a schedule fires, in UTC, each later than the last.

    Ends where the calendar has none within fifty years (30 February). Text that is no cron
    expression never fires. Raises UserError for a time zone that this machine does not know.
    """
    fields = CRON_FORMS.get(cron, cron).split()
    zone = _zone(time_zone)
    is_fixed = not any(field.startswith("*") for field in fields[:2])
    walk = _at_fixed_times if is_fixed else _by_the_clock
    try:
        yield from walk(" ".join(fields), zone, after.astimezone(UTC).replace(microsecond=0))
    except (CronSimError, OverflowError):  # no such day in any month; the end of the calendar
        return


def following(cron: str, time_zone: str, *, after: datetime) -> datetime | None:
    """The first moment after ``after`` at which a schedule fires; None if it never will."""
    return next(occurrences(cron, time_zone, after=after), None)


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise UserError(f"this machine knows no time zone {name!r}") from None


def _at_fixed_times(fields: str, zone: zoneinfo.ZoneInfo, after: datetime) -> Iterator[datetime]:
    last = after
    for found in CronSim(fields, after.astimezone(zone)):
        moment = found.astimezone(UTC)
        # Asked in the second pass of an hour that comes twice, cronsim first gives the one before.
        if moment > last:
            yield moment
            last = moment


def _by_the_clock(fields: str, zone: zoneinfo.ZoneInfo, after: datetime) -> Iterator[datetime]:
    last, offset = after, _offset(zone, after)
    while True:
        change = None
        for found in CronSim(fields, (last + offset).replace(tzinfo=None)):
            moment = (found - offset).replace(tzinfo=UTC)
            change = _change(zone, offset, last, moment)
            if change is not None:
                break
            yield moment
            last = moment
        if change is None:
            return
        last, offset = change - _SECOND, _offset(zone, change)


def _change(
    zone: zoneinfo.ZoneInfo, offset: timedelta, after: datetime, until: datetime
) -> datetime | None:
    """The first second after ``after``, and not after ``until``, at which the clock is set.

    Looks once a day: no place sets its clock and sets it back within one.
    """
    known, point = after, min(after + _DAY, until)
    while _offset(zone, point) == offset:
        if point == until:
            return None
        known, point = point, min(point + _DAY, until)
    while point - known > _SECOND:
        middle = known + (point - known) // _SECOND // 2 * _SECOND
        if _offset(zone, middle) == offset:
            known = middle
        else:
            point = middle
    return point


def _offset(zone: zoneinfo.ZoneInfo, moment: datetime) -> timedelta:
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None, "every zone has one"
    return offset
