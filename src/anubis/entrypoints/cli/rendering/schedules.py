"""Schedules: many in a table, one on a screen, and when the next firings are."""

from __future__ import annotations

import zoneinfo
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

from anubis.domain.event import EventKind
from anubis.domain.run import RunId
from anubis.domain.schedule import CatchUp, Overlap, Schedule, ScheduleId
from anubis.entrypoints.cli.rendering import cards, states, text
from anubis.entrypoints.cli.rendering.columns import Cell, Column, painted, table
from anubis.ports.schedule_store import ScheduleEvent

_COLUMNS = (
    Column(title="schedule"),
    Column(title="benchmark", shortens_to=12),
    Column(title="cron"),
    Column(title="time zone", leaves=2),
    Column(title="next"),
    Column(title="fired", right=True, leaves=3),
    Column(title="last", shortens_to=16, leaves=1),
)

_OVERLAP = {
    Overlap.SKIP: "skip: a firing is left out while a run of it has not ended",
    Overlap.QUEUE: "queue: runs wait for each other in the queue",
    Overlap.CANCEL_PREVIOUS: "cancel_previous: a firing cancels the runs before it",
}
_CATCH_UP = {
    CatchUp.NONE: "none: what was missed is left out",
    CatchUp.LAST: "last: one run makes up for all that was missed",
    CatchUp.ALL: "all: what was missed is made up for",
}


def schedules_table(schedules: Sequence[Schedule], now: datetime, *, width: int | None) -> str:
    """The schedules in the order given, cut to a terminal of this width; whole without one."""
    if not schedules:
        return "no schedules\n"
    is_short = width is not None
    rows = [_row(schedule, now, is_short=is_short) for schedule in schedules]
    return table(_COLUMNS, rows, width=width)


def _row(schedule: Schedule, now: datetime, *, is_short: bool) -> list[Cell]:
    return [
        Cell(text=short(schedule.id) if is_short else schedule.id),
        Cell(text=text.printable(schedule.benchmark)),
        Cell(text=schedule.cron),
        Cell(text=schedule.time_zone),
        _next(schedule, now),
        Cell(text=f"{schedule.fired:,}"),
        Cell(text=text.printable(schedule.last_note)),
    ]


def short(schedule_id: ScheduleId) -> str:
    """A prefix of the id that is as good as unique."""
    return states.short(RunId(schedule_id))


def card(
    schedule: Schedule,
    upcoming: Sequence[datetime],
    events: Sequence[ScheduleEvent],
    now: datetime,
    width: int | None = None,
) -> str:
    """All about one schedule: what it is, when it fires, and what happened to it."""
    state = _next(schedule, now)
    title = painted(Cell(text=text.printable(schedule.benchmark), bold=True))
    facts = [
        ("schedule", schedule.id),
        ("cron", f"{schedule.cron} ({schedule.time_zone})"),
        ("overlap", _OVERLAP[schedule.overlap]),
        ("catch up", _CATCH_UP[schedule.catch_up]),
        ("engine", schedule.engine),
        ("priority", str(schedule.priority) if schedule.priority else ""),
        ("submitted", f"{text.moment(schedule.created_at)} by {schedule.submitter}"),
        ("paused", "" if schedule.paused_at is None else text.moment(schedule.paused_at)),
        ("runs", f"{schedule.fired:,}"),
        ("last run", schedule.last_run or ""),
        ("next", ", ".join(moments(schedule, upcoming))),
    ]
    parts = [f"◷ {title}  {painted(state)}", "", *cards.fact_lines(facts, width), ""]
    for event in events:
        parts += _event_lines(event, width)
    return cards.page([*parts, "", *_hints(schedule)])


def moments(schedule: Schedule, upcoming: Sequence[datetime]) -> list[str]:
    """Firings as a clock in the schedule's time zone shows them."""
    zone = _zone(schedule.time_zone)
    return [moment.astimezone(zone).strftime("%Y-%m-%d %H:%M %Z") for moment in upcoming]


def announcement(schedule: Schedule, upcoming: Sequence[datetime]) -> str:
    """What a person who submitted a schedule should know."""
    name, times = text.printable(schedule.benchmark), moments(schedule, upcoming)
    first = f"{name} fires by {schedule.cron!r} in {schedule.time_zone}; next:"
    last = f"'anubis schedule show {short(schedule.id)}' tells what became of them"
    return "\n".join([first, *(f"  {moment}" for moment in times), last])


def _next(schedule: Schedule, now: datetime) -> Cell:
    if schedule.is_paused:
        return Cell(text="paused", colour="yellow")
    if schedule.next_at is None:
        return Cell(text="never", colour="yellow")
    return Cell(text=text.until(schedule.next_at, now), colour="cyan")


def _event_lines(event: ScheduleEvent, width: int | None) -> list[str]:
    at = painted(Cell(text=text.moment(event.at)[5:-3], dim=True))
    is_warning = event.kind is EventKind.WARNING
    mark = painted(Cell(text="!", colour="yellow", bold=True)) if is_warning else " "
    return text.hanging(
        text.printable(event.message), width, after=f"  {at} {mark} ", indent=" " * 4
    )


def _hints(schedule: Schedule) -> list[str]:
    name = short(schedule.id)
    verb = "resume" if schedule.is_paused else "pause"
    calls = (f"anubis list --family {schedule.id}", f"anubis schedule {verb} {name}")
    return [painted(Cell(text=f"  {call}", dim=True)) for call in calls]


def _zone(name: str) -> tzinfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):  # another machine's zone
        return UTC
