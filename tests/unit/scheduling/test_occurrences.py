"""When schedules fire: the calendar, clocks that are changed, and a scan of every minute."""

from __future__ import annotations

import itertools
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anubis.domain.errors import UserError
from anubis.domain.schedule import CRON_FORMS
from anubis.stages.scheduling.occurrences import following, occurrences

MINUTE = timedelta(minutes=1)
BERLIN = "Europe/Berlin"  # by an hour: on 31 March 2024 at 02:00, on 27 October at 03:00
LORD_HOWE = "Australia/Lord_Howe"  # by half an hour: on 7 April 2024, on 6 October, both at 02:00


def local(text: str, zone: str, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zoneinfo.ZoneInfo(zone), fold=fold)


def shown(cron: str, zone: str, after: str, count: int) -> list[str]:
    """The next firings as a clock in that place shows them, with the offset."""
    found = itertools.islice(occurrences(cron, zone, after=local(after, zone)), count)
    place = zoneinfo.ZoneInfo(zone)
    return [moment.astimezone(place).strftime("%d %H:%M%z")[:-2] for moment in found]


# -- the calendar --------------------------------------------------------------------------------


def test_a_firing_at_the_moment_itself_does_not_count() -> None:
    noon = datetime(2024, 5, 17, 12, tzinfo=UTC)
    assert following("0 12 * * *", "UTC", after=noon) == noon + timedelta(days=1)
    assert following("0 12 * * *", "UTC", after=noon - timedelta(microseconds=1)) == noon


def test_hours_are_hours_of_the_time_zone() -> None:
    after = datetime(2024, 5, 17, 12, tzinfo=UTC)
    assert following("0 3 * * *", "Asia/Tokyo", after=after) == datetime(
        2024, 5, 17, 18, tzinfo=UTC
    )


def test_names_of_days_and_months_are_understood() -> None:
    assert shown("0 9 * jan,MAR mon-FRI", "UTC", "2024-01-31 10:00", 2) == [
        "01 09:00+00",
        "04 09:00+00",
    ]


@pytest.mark.parametrize("form", CRON_FORMS)
def test_a_form_means_its_five_fields(form: str) -> None:
    after = datetime(2024, 5, 17, 12, 34, tzinfo=UTC)
    [one, other] = (
        list(itertools.islice(occurrences(cron, BERLIN, after=after), 3))
        for cron in (form, CRON_FORMS[form])
    )
    assert one == other != []


def test_a_leap_day_comes_every_four_years() -> None:
    found = occurrences("0 0 29 2 *", "UTC", after=datetime(2024, 3, 1, tzinfo=UTC))
    assert [moment.year for moment in itertools.islice(found, 3)] == [2028, 2032, 2036]


@pytest.mark.parametrize(
    "cron",
    [
        "0 0 30 2 *",  # no February has so many days
        "* * 31 2,4 *",
        "0 0 */29 2 MON#5",  # a fifth Monday is never the first or the thirtieth
        "* * */29 2 MON#5",
        "every day",
        "",
    ],
)
def test_what_no_calendar_has_never_fires_and_does_not_hang(cron: str) -> None:
    assert following(cron, BERLIN, after=datetime(2024, 1, 1, tzinfo=UTC)) is None


def test_the_end_of_the_calendar_is_an_end() -> None:
    after = datetime(9999, 12, 31, 22, 59, tzinfo=UTC)
    assert len(list(occurrences("* * * * *", BERLIN, after=after))) <= 1


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "", "../../etc/passwd", "Europe"])
def test_an_unknown_time_zone_is_named(zone: str) -> None:
    with pytest.raises(UserError, match="knows no time zone"):
        following("0 0 * * *", zone, after=datetime(2024, 1, 1, tzinfo=UTC))


# -- clocks that are changed ---------------------------------------------------------------------


def test_a_time_that_is_skipped_in_spring_fires_once_right_after_the_gap() -> None:
    assert shown("30 2 * * *", BERLIN, "2024-03-29 12:00", 3) == [
        "30 02:30+01",
        "31 03:00+02",
        "01 02:30+02",
    ]


def test_several_skipped_times_fire_once_together() -> None:
    assert shown("0,20,40 2,3 * * *", BERLIN, "2024-03-31 01:00", 4) == [
        "31 03:00+02",
        "31 03:20+02",
        "31 03:40+02",
        "01 02:00+02",
    ]


def test_a_time_that_comes_twice_in_autumn_fires_when_it_comes_first() -> None:
    assert shown("30 2 * * *", BERLIN, "2024-10-26 12:00", 2) == ["27 02:30+02", "28 02:30+01"]


def test_a_schedule_asked_within_the_second_pass_does_not_fire_again() -> None:
    between = local("2024-10-27 02:15", BERLIN, fold=1)  # after the first 02:30, before the second
    assert following("30 2 * * *", BERLIN, after=between) == local("2024-10-28 02:30", BERLIN)


@pytest.mark.parametrize("zone", [BERLIN, LORD_HOWE, "America/New_York", "Africa/Cairo"])
def test_jobs_of_an_interval_keep_it_the_whole_year(zone: str) -> None:
    found = occurrences("*/30 * * * *", zone, after=datetime(2024, 1, 1, tzinfo=UTC))
    year = list(itertools.takewhile(lambda moment: moment.year == 2024, found))
    assert len({later - earlier for earlier, later in itertools.pairwise(year)}) == 1


def test_hourly_jobs_fire_every_real_hour_though_the_clock_jumps() -> None:
    for month, day in ((3, 30), (10, 26)):
        after = datetime(2024, month, day, 20, tzinfo=UTC)
        found = list(itertools.islice(occurrences("@hourly", BERLIN, after=after), 12))
        assert found == [after + timedelta(hours=hour) for hour in range(1, 13)]


def test_half_an_hour_of_summer_time_loses_no_quarter_of_an_hour() -> None:
    quarters = ["07 02:00+10", "07 02:15+10", "07 02:30+10", "07 02:45+10"]
    assert shown("*/15 2 * * *", LORD_HOWE, "2024-04-07 01:00", 4) == quarters
    # In October it is 02:30 right after 01:59.
    assert shown("*/15 2 * * *", LORD_HOWE, "2024-10-06 01:00", 3) == [
        "06 02:30+11",
        "06 02:45+11",
        "07 02:00+11",
    ]


def test_a_fixed_time_in_half_an_hour_that_is_skipped_or_doubled_fires_once() -> None:
    assert shown("10 2 * * *", LORD_HOWE, "2024-10-05 12:00", 2) == ["06 02:30+11", "07 02:10+11"]
    assert shown("45 1 * * *", LORD_HOWE, "2024-04-06 12:00", 2) == ["07 01:45+11", "08 01:45+10"]


# -- against a scan of every minute --------------------------------------------------------------

Field = tuple[str, frozenset[int]]
"""How a field is written, and the numbers it means."""


def fields(low: int, high: int) -> st.SearchStrategy[Field]:
    """A star, a step, numbers or a range."""
    span = range(low, high + 1)
    number = st.integers(low, high)
    steps = st.integers(1, high).map(lambda step: (f"*/{step}", frozenset(span[::step])))
    several = st.sets(number, min_size=1, max_size=4).map(
        lambda numbers: (",".join(map(str, sorted(numbers))), frozenset(numbers))
    )
    ranges = st.tuples(number, number).map(
        lambda ends: (f"{min(ends)}-{max(ends)}", frozenset(range(min(ends), max(ends) + 1)))
    )
    return st.one_of(st.just(("*", frozenset(span))), steps, several, ranges)


CHANGES = {
    BERLIN: ("2024-03-31 00:00", "2024-10-27 00:00"),
    LORD_HOWE: ("2024-04-06 15:00", "2024-10-05 15:30"),
    "Africa/Cairo": ("2024-04-25 22:00", "2024-10-31 21:00"),  # at midnight
    "America/Havana": ("2024-03-10 05:00", "2024-11-03 05:00"),  # at midnight
    "UTC": ("2024-02-28 12:00", "2024-12-31 12:00"),
}
"""Zones, and moments in UTC near which their clocks are changed."""

starts = st.builds(
    lambda zone, which, minutes: (
        zone,
        datetime.fromisoformat(CHANGES[zone][which]).replace(tzinfo=UTC) + minutes * MINUTE,
    ),
    st.sampled_from(sorted(CHANGES)),
    st.integers(0, 1),
    st.integers(-1500, 300),
)
WINDOW = timedelta(hours=30)


def scanned(times: tuple[Field, ...], zone: str, after: datetime) -> list[datetime]:
    """Every minute in UTC, by the rules in the docstring of the module."""
    place = zoneinfo.ZoneInfo(zone)
    minutes = [after + step * MINUTE for step in range(1, int(WINDOW / MINUTE) + 1)]
    if any(field.startswith("*") for field, _ in times[:2]):
        return [one for one in minutes if matches(times, one.astimezone(place))]
    found = set(fixed(times, place, after, after + WINDOW))
    return sorted(moment for moment in found if after < moment <= after + WINDOW)


def fixed(
    times: tuple[Field, ...], place: zoneinfo.ZoneInfo, after: datetime, until: datetime
) -> Iterator[datetime]:
    """Every minute on the wall, those that do not exist too, and when it comes about."""
    wall = (after.astimezone(place) - timedelta(hours=3)).replace(tzinfo=None)
    end = (until.astimezone(place) + timedelta(hours=3)).replace(tzinfo=None)
    while wall <= end:
        if matches(times, wall):
            real = wall
            while not exists(real, place):
                real += MINUTE
            yield real.replace(tzinfo=place).astimezone(UTC)
        wall += MINUTE


def exists(wall: datetime, place: zoneinfo.ZoneInfo) -> bool:
    return wall.replace(tzinfo=place).astimezone(UTC).astimezone(place).replace(tzinfo=None) == wall


def matches(times: tuple[Field, ...], at: datetime) -> bool:
    (_, minutes), (_, hours), (day, days), (_, months), (weekday, weekdays) = times
    if at.minute not in minutes or at.hour not in hours or at.month not in months:
        return False
    is_day, is_weekday = at.day in days, at.isoweekday() % 7 in weekdays
    if day.startswith("*") or weekday.startswith("*"):
        return is_day and is_weekday
    return is_day or is_weekday


EVERY = ("*", frozenset(range(60)))
DAYS = ("*", frozenset(range(1, 32)))
QUARTERS = ("*/15", frozenset({0, 15, 30, 45}))


@settings(max_examples=80, deadline=None)
@given(
    minutes=fields(0, 59),
    hours=fields(0, 23),
    days=st.one_of(st.just(DAYS), fields(1, 31)),
    months=st.just(("*", frozenset(range(1, 13)))),
    weekdays=st.one_of(st.just(("*", frozenset(range(7)))), fields(0, 6)),
    start=starts,
)
@example(  # cronsim alone loses 02:00 and 02:15
    minutes=QUARTERS,
    hours=("2", frozenset({2})),
    days=DAYS,
    months=DAYS,
    weekdays=EVERY,
    start=(LORD_HOWE, datetime(2024, 4, 6, 14, 50, tzinfo=UTC)),
)
def test_every_minute_that_matches_fires_and_no_other(
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    weekdays: Field,
    start: tuple[str, datetime],
) -> None:
    zone, after = start
    times = (minutes, hours, days, months, weekdays)
    cron = " ".join(text for text, _ in times)
    found = occurrences(cron, zone, after=after)
    until = after + WINDOW
    assert list(itertools.takewhile(lambda moment: moment <= until, found)) == scanned(
        times, zone, after
    )


@settings(max_examples=50, deadline=None)
@given(minutes=fields(0, 59), hours=fields(0, 23), start=starts)
def test_firings_are_strictly_later_one_after_the_other(
    minutes: Field, hours: Field, start: tuple[str, datetime]
) -> None:
    zone, after = start
    cron = f"{minutes[0]} {hours[0]} * * *"
    found = [after, *itertools.islice(occurrences(cron, zone, after=after), 200)]
    assert all(earlier < later for earlier, later in itertools.pairwise(found))
    # Asked again after any of them, the rest is the same.
    middle = len(found) // 2
    again = occurrences(cron, zone, after=found[middle])
    assert list(itertools.islice(again, len(found) - middle - 1)) == found[middle + 1 :]
