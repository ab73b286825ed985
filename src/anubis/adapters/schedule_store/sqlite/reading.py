"""Questions about schedules, as functions of a connection."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from anubis.adapters.schedule_store import rules
from anubis.adapters.schedule_store.sqlite import rows
from anubis.adapters.sqlite import documents, queries, values
from anubis.domain import identity
from anubis.domain.document import Document
from anubis.domain.schedule import Schedule, ScheduleId
from anubis.ports.schedule_store import ScheduleEvent, ScheduleQuery

_SQL = queries.Queries(__file__, "reading.sql")


def row(connection: sqlite3.Connection, schedule_id: ScheduleId) -> values.Row | None:
    """The row of a schedule, if there is one."""
    asked = {"id": values.storable(schedule_id)}
    found = connection.execute(_SQL["schedule_by_id"], asked).fetchone()
    assert found is None or isinstance(found, tuple)
    return found


def known_row(connection: sqlite3.Connection, schedule_id: ScheduleId) -> values.Row:
    """The row of a schedule. Raises ScheduleNotFound."""
    found = row(connection, schedule_id)
    if found is None:
        raise rules.not_found(schedule_id)
    return found


def schedule(connection: sqlite3.Connection, schedule_id: ScheduleId) -> Schedule:
    """One schedule. Raises ScheduleNotFound."""
    return rows.schedule(known_row(connection, schedule_id))


def with_key(connection: sqlite3.Connection, submitter: str, key: str) -> Schedule | None:
    """The schedule that a person submitted with a key, if there is one."""
    chosen = {"submitter": values.storable(submitter), "submission_key": values.storable(key)}
    found = _schedules(connection, "schedule_by_submission_key", chosen)
    return found[0] if found else None


def count_of(connection: sqlite3.Connection, submitter: str, limit: int) -> int:
    """How many schedules a person has, up to ``limit``."""
    asked = {"submitter": values.storable(submitter), "limit": values.limit(limit)}
    [[count]] = connection.execute(_SQL["count_of_submitter"], asked)
    return int(count)


def resolve(connection: sqlite3.Connection, reference: str) -> ScheduleId:
    """The schedule a person means; see the port."""
    asked = rules.reference(reference)
    parameters: values.Parameters = {
        "start": asked.start,
        "end": asked.end,
        "benchmark": values.storable(asked.text),
        "limit": rules.NAMED + 1,
    }
    return rules.only(asked, _schedules(connection, "schedules_by_reference", parameters))


def page(connection: sqlite3.Connection, query: ScheduleQuery) -> tuple[Schedule, ...]:
    """The schedules that ``query`` asks for, newest first."""
    asked: values.Parameters = {
        "submitter": values.maybe_storable(query.submitter),
        "before": values.storable(query.before or identity.ABOVE_ALL_IDS),
        "limit": values.limit(query.limit),
    }
    name = "schedules_newest" if query.submitter is None else "schedules_by_submitter"
    return _schedules(connection, name, asked)


def due(connection: sqlite3.Connection, now: datetime, limit: int) -> tuple[Schedule, ...]:
    """Schedules whose time has come, the earliest first."""
    asked = {"now": values.micros(now), "limit": values.limit(limit)}
    return _schedules(connection, "schedules_due", asked)


def next_due(connection: sqlite3.Connection) -> datetime | None:
    """When the next schedule fires."""
    [[at]] = connection.execute(_SQL["next_due"])
    return values.maybe_instant(at)


def document(connection: sqlite3.Connection, schedule_id: ScheduleId) -> Document:
    """The exact descriptor of a schedule."""
    asked = {"id": values.storable(schedule_id)}
    found = connection.execute(_SQL["schedule_document"], asked).fetchone()
    if found is None:
        raise rules.not_found(schedule_id)
    return documents.document(found)


def scripts(connection: sqlite3.Connection) -> frozenset[str]:
    """The archives of code that schedules need."""
    return frozenset(name for (name,) in connection.execute(_SQL["scripts"]))


def events(
    connection: sqlite3.Connection, schedule_id: ScheduleId, after: int, limit: int
) -> tuple[ScheduleEvent, ...]:
    """Events with a number above ``after``, in order."""
    asked = {
        "id": values.storable(schedule_id),
        "after": values.integer(after),
        "limit": values.limit(limit),
    }
    found = connection.execute(_SQL["schedule_events"], asked).fetchall()
    if not found:
        known_row(connection, schedule_id)
    return tuple(rows.event(schedule_id, each) for each in found)


def _schedules(
    connection: sqlite3.Connection, name: str, parameters: values.Parameters
) -> tuple[Schedule, ...]:
    return tuple(map(rows.schedule, connection.execute(_SQL[name], parameters)))
