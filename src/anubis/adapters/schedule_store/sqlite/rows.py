"""Translate between rows and schedules."""

from __future__ import annotations

from anubis.adapters.sqlite.values import (
    Parameters,
    Row,
    instant,
    maybe_instant,
    maybe_micros,
    maybe_storable,
    micros,
    storable,
)
from anubis.domain.event import EventKind
from anubis.domain.schedule import CatchUp, Overlap, Schedule, ScheduleId
from anubis.ports.schedule_store import ScheduleEvent


def schedule(row: Row) -> Schedule:
    """The schedule of a row of any query that gives schedules."""
    return Schedule(
        id=row[0],
        version=row[1],
        benchmark=row[2],
        cron=row[3],
        time_zone=row[4],
        overlap=Overlap(row[5]),
        catch_up=CatchUp(row[6]),
        engine=row[7],
        priority=row[8],
        descriptor_sha=row[9],
        submitter=row[10],
        created_at=instant(row[11]),
        paused_at=maybe_instant(row[12]),
        next_at=maybe_instant(row[13]),
        last_at=maybe_instant(row[14]),
        last_run=row[15],
        last_note=row[16],
        fired=row[17],
    )


def key_and_events(row: Row) -> tuple[int, int]:
    """The key of the row's schedule and the number of its last event."""
    return row[18], row[19]


def columns(stored: Schedule) -> Parameters:
    """Parameters of ``replace_schedule`` and ``add_schedule`` that the schedule itself has."""
    return {
        "id": stored.id,
        "version": stored.version,
        "benchmark": storable(stored.benchmark),
        "cron": storable(stored.cron),
        "time_zone": storable(stored.time_zone),
        "overlap": stored.overlap.value,
        "catch_up": stored.catch_up.value,
        "engine": storable(stored.engine),
        "priority": stored.priority,
        "descriptor_sha": stored.descriptor_sha,
        "submitter": storable(stored.submitter),
        "created_at": micros(stored.created_at),
        "paused_at": maybe_micros(stored.paused_at),
        "next_at": maybe_micros(stored.next_at),
        "last_at": maybe_micros(stored.last_at),
        "last_run": maybe_storable(stored.last_run),
        "last_note": storable(stored.last_note),
        "fired": stored.fired,
    }


def new_schedule(new: Schedule, key: str | None) -> Parameters:
    """Parameters of ``add_schedule``, without those of the document."""
    return {**columns(new), "submission_key": maybe_storable(key)}


def event(schedule_id: ScheduleId, row: Row) -> ScheduleEvent:
    """The event of a row of ``schedule_events``."""
    number, at, kind, message, run_id = row
    return ScheduleEvent(
        schedule_id=schedule_id,
        number=number,
        at=instant(at),
        kind=EventKind(kind),
        message=message,
        run_id=run_id,
    )


def new_event(key: int, new: ScheduleEvent) -> Parameters:
    """Parameters of ``add_schedule_event``."""
    return {
        "schedule": key,
        "number": new.number,
        "at": micros(new.at),
        "kind": new.kind.value,
        "message": storable(new.message),
        "run": maybe_storable(new.run_id),
    }
