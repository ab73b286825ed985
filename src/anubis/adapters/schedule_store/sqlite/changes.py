"""Changes to schedules, as functions of a connection. They run in the writer's transaction."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Sequence

from anubis.adapters.schedule_store import rules
from anubis.adapters.schedule_store.sqlite import reading, rows
from anubis.adapters.sqlite import documents, queries
from anubis.adapters.sqlite.writing import Change
from anubis.domain.document import Document
from anubis.domain.event import NewEvent
from anubis.domain.schedule import Schedule, ScheduleId
from anubis.ports.schedule_store import ScheduleEvent

_SQL = queries.Queries(__file__, "changing.sql")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class New:
    """All that is stored of a new schedule."""

    schedule: Schedule
    document: Document
    message: str
    key: str | None = None


def add(new: New) -> Change[Schedule]:
    """Store a new schedule, unless it or its key is there; see the port."""

    def change(connection: sqlite3.Connection) -> Schedule:
        if (row := reading.row(connection, new.schedule.id)) is not None:
            stored = rows.schedule(row)
            rules.check_same(stored, new.schedule)
            return stored
        if (keyed := _keyed(connection, new)) is not None:
            return keyed
        _insert(connection, new)
        return new.schedule

    return change


def _keyed(connection: sqlite3.Connection, new: New) -> Schedule | None:
    if new.key is None:
        return None
    keyed = reading.with_key(connection, new.schedule.submitter, new.key)
    if keyed is not None:
        rules.check_same_key(keyed, new.schedule, new.key)
    return keyed


def _insert(connection: sqlite3.Connection, new: New) -> None:
    documents.keep(connection, new.document)
    columns = {**rows.new_schedule(new.schedule, new.key), **documents.columns(new.document)}
    key = connection.execute(_SQL["add_schedule"], columns).lastrowid
    assert key is not None, "an INSERT always has one"
    first = rules.numbered(new.schedule.id, 0, [rules.first_event(new.schedule, new.message)])
    _add_events(connection, key, first)


def replace(schedule: Schedule, events: Sequence[NewEvent]) -> Change[Schedule | None]:
    """Store a changed schedule, if nobody was first; see the port."""

    def change(connection: sqlite3.Connection) -> Schedule | None:
        row = reading.known_row(connection, schedule.id)
        stored = rows.schedule(row)
        rules.check_same(stored, schedule)
        if stored.version != schedule.version:
            return None
        key, last = rows.key_and_events(row)
        after = dataclasses.replace(schedule, version=schedule.version + 1)
        columns = {**rows.columns(after), "schedule": key, "events": last + len(events)}
        connection.execute(_SQL["replace_schedule"], columns)
        _add_events(connection, key, rules.numbered(schedule.id, last, events))
        return after

    return change


def delete(schedule_id: ScheduleId) -> Change[None]:
    """Forget a schedule; see the port."""

    def change(connection: sqlite3.Connection) -> None:
        row = reading.known_row(connection, schedule_id)
        key, _ = rows.key_and_events(row)
        connection.execute(_SQL["delete_schedule"], {"schedule": key})
        documents.forget_lone(connection, rows.schedule(row).descriptor_sha)

    return change


def _add_events(connection: sqlite3.Connection, key: int, events: Sequence[ScheduleEvent]) -> None:
    new = [rows.new_event(key, event) for event in events]
    connection.executemany(_SQL["add_schedule_event"], new)
