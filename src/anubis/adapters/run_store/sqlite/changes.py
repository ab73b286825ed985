"""Every change to the store, as a function of a connection. Runs in the writer's transaction.

Each function leaves the rows consistent or raises; the writer undoes what a raising one did.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from anubis.adapters.run_store import transitions
from anubis.adapters.run_store.sqlite import reading, rows
from anubis.adapters.sqlite import documents, queries, values
from anubis.adapters.sqlite.writing import Change
from anubis.domain.document import Document, Fingerprint
from anubis.domain.event import NewEvent
from anubis.domain.metric import Summary
from anubis.domain.run import Run, RunId, WorkerId
from anubis.ports.run_store import Step

_SQL = queries.Queries(__file__, "changing.sql")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    """All that is stored when a run comes in."""

    run: Run
    document: Document
    plan: str
    message: str  #: of the first event
    key: str | None = None


def add(new: Submission) -> Change[Run]:
    """Store a new run, unless it or its key is there; see the port."""

    def change(connection: sqlite3.Connection) -> Run:
        stored = _stored_before(connection, new)
        if stored is None:
            _insert(connection, new)
        return stored or new.run

    return change


def _stored_before(connection: sqlite3.Connection, new: Submission) -> Run | None:
    if (row := reading.row(connection, new.run.id)) is not None:
        stored = rows.run(row)
        transitions.check_same(stored, new.run)
        return stored
    if new.key is None:
        return None
    keyed = reading.run_by_key(connection, new.run.submitter, new.key)
    if keyed is not None:
        transitions.check_same_key(keyed, new.run, new.key)
    return keyed


def _insert(connection: sqlite3.Connection, new: Submission) -> None:
    run = new.run
    documents.keep(connection, new.document)
    columns = rows.new_run(run, new.document, new.key)
    key = connection.execute(_SQL["add_run"], columns).lastrowid
    assert key is not None, "an INSERT always has one"
    connection.execute(_SQL["add_plan"], {"run": key, "content": values.storable(new.plan)})
    connection.executemany(_SQL["add_label"], rows.labels(run))
    _add_events(connection, key, 0, [transitions.first_event(run, new.message)])


def lease(worker: WorkerId, wanted: reading.Wanted, duration: timedelta) -> Change[Sequence[Run]]:
    """Give ``worker`` the free runs that are wanted; see the port."""

    def change(connection: sqlite3.Connection) -> Sequence[Run]:
        ids = reading.free_ids(connection, wanted)
        _lease(connection, worker, ids, wanted.now + duration)
        return reading.runs(connection, ids)

    return change


def renew(worker: WorkerId, run_ids: Collection[RunId], ends: datetime) -> Change[frozenset[RunId]]:
    """Extend what ``worker`` still holds; see the port."""

    def change(connection: sqlite3.Connection) -> frozenset[RunId]:
        among = {"ids": json.dumps(list(run_ids)), "worker": values.storable(worker)}
        held = [run_id for (run_id,) in connection.execute(_SQL["held_among"], among)]
        _lease(connection, worker, held, ends)
        return frozenset(held)

    return change


def _lease(
    connection: sqlite3.Connection, worker: WorkerId, ids: Sequence[RunId], ends: datetime
) -> None:
    given = {
        "ids": json.dumps(ids),
        "worker": values.storable(worker),
        "ends": values.micros(ends),
    }
    connection.execute(_SQL["lease"], given)


def release_all(worker: WorkerId) -> Change[None]:
    """Give back every lease of ``worker``; see the port."""

    def change(connection: sqlite3.Connection) -> None:
        connection.execute(_SQL["release_all"], {"worker": values.storable(worker)})

    return change


def apply(worker: WorkerId, step: Step) -> Change[Run]:
    """Store a step; see the port."""

    def change(connection: sqlite3.Connection) -> Run:
        row = reading.row(connection, step.run_id)
        held = transitions.check_holder(rows.run(row) if row else None, worker, step.run_id)
        assert row is not None, "check_holder refuses a run that is not there"
        after, events = transitions.stepped(held, step)
        key, last = rows.key_and_events(row)
        _add_events(connection, key, last, events)
        _store_findings(connection, key, step)
        changed = {**rows.changed_run(after), "run": key, "events": last + len(events)}
        connection.execute(_SQL[_update(held, after, step)], changed)
        if after.state.is_terminal:
            connection.execute(_SQL["forget_plan"], {"run": key})
        return after

    return change


def _update(before: Run, after: Run, step: Step) -> str:
    """The query that rewrites no more indexes than the step needs."""
    if (before.started_at, before.ended_at) != (after.started_at, after.ended_at):
        return "start_or_end_run"
    return "move_run" if step.moves else "touch_run"


def _store_findings(connection: sqlite3.Connection, key: int, step: Step) -> None:
    if step.fingerprint is not None:
        _set_fingerprint(connection, key, step.fingerprint)
    if step.summaries is not None:
        _replace_summaries(connection, key, step.summaries)


def _set_fingerprint(connection: sqlite3.Connection, key: int, found: Fingerprint) -> None:
    machine = values.storable(found.machine)
    sha = hashlib.sha256(machine.encode()).hexdigest()
    connection.execute(_SQL["add_machine"], {"sha": sha, "content": machine})
    moment = values.storable(found.moment)
    connection.execute(_SQL["set_fingerprint"], {"run": key, "sha": sha, "moment": moment})


def _replace_summaries(
    connection: sqlite3.Connection, key: int, summaries: Sequence[Summary]
) -> None:
    connection.execute(_SQL["forget_summaries"], {"run": key})
    connection.executemany(
        _SQL["add_summary"], [rows.new_summary(key, summary) for summary in summaries]
    )


def request_cancel(run_id: RunId, now: datetime, by: str) -> Change[Run]:
    """Note a wish to stop; see the port."""

    def change(connection: sqlite3.Connection) -> Run:
        row = reading.known_row(connection, run_id)
        after, events = transitions.cancel_requested(rows.run(row), now, by)
        if events:
            key, last = rows.key_and_events(row)
            _add_events(connection, key, last, events)
            changed = {**rows.changed_run(after), "run": key, "events": last + len(events)}
            connection.execute(_SQL["request_cancel"], changed)
        return after

    return change


def delete(run_id: RunId) -> Change[None]:
    """Forget a run that has ended; see the port."""

    def change(connection: sqlite3.Connection) -> None:
        row = reading.known_row(connection, run_id)
        run = rows.run(row)
        transitions.check_ended(run)
        key, _ = rows.key_and_events(row)
        connection.executemany(_SQL["delete_label"], rows.labels(run))
        connection.execute(_SQL["delete_run"], {"run": key})
        documents.forget_lone(connection, run.descriptor_sha)
        connection.execute(_SQL["delete_lone_machines"])

    return change


def _add_events(
    connection: sqlite3.Connection, key: int, last: int, events: Sequence[NewEvent]
) -> None:
    numbered = enumerate(events, start=last + 1)
    new: Sequence[Mapping[str, values.Value]] = [
        rows.new_event(key, number, event) for number, event in numbered
    ]
    connection.executemany(_SQL["add_event"], new)
