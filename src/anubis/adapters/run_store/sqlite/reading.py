"""Questions about runs, as functions of a connection. ``queueing`` and ``history`` have others.

Lists find ids first, in one index, and then fetch exactly those rows: a page costs the same among
ten runs and among millions. Nothing here waits or changes anything, so the store calls it on the
event loop: the longest takes a fraction of a millisecond, a hop to a thread costs as much.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from anubis.adapters.run_store import references, transitions
from anubis.adapters.run_store.sqlite import rows
from anubis.adapters.sqlite import documents, queries, values
from anubis.domain import identity
from anubis.domain.document import Document, Fingerprint
from anubis.domain.event import Event
from anubis.domain.metric import Summary
from anubis.domain.run import Run, RunId, RunState, WorkerId


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Which free runs a worker would take."""

    now: datetime
    states: Collection[RunState]
    limit: int
    urgent_only: bool = False
    among: Collection[RunId] | None = None  #: None: any


_SQL = queries.Queries(__file__, "reading.sql")


def ids(connection: sqlite3.Connection, name: str, parameters: values.Parameters) -> list[RunId]:
    """What one of the ``ids_…`` queries answers."""
    return [run_id for (run_id,) in connection.execute(_SQL[name], parameters)]


def row(connection: sqlite3.Connection, run_id: RunId) -> values.Row | None:
    """The row of a run, if there is one."""
    found = connection.execute(_SQL["run_by_id"], {"id": values.storable(run_id)}).fetchone()
    assert found is None or isinstance(found, tuple)
    return found


def known_row(connection: sqlite3.Connection, run_id: RunId) -> values.Row:
    """The row of a run. Raises RunNotFound."""
    found = row(connection, run_id)
    if found is None:
        raise transitions.not_found(run_id)
    return found


def run(connection: sqlite3.Connection, run_id: RunId) -> Run:
    """One run. Raises RunNotFound."""
    return rows.run(known_row(connection, run_id))


def runs(connection: sqlite3.Connection, run_ids: Sequence[RunId]) -> tuple[Run, ...]:
    """The runs with these ids, oldest first; those that are gone are left out."""
    if not run_ids:
        return ()
    found = connection.execute(_SQL["runs_by_ids"], {"ids": json.dumps(run_ids)})
    return tuple(map(rows.run, found))


def resolve(connection: sqlite3.Connection, reference: str) -> RunId:
    """The run a person means; see the port."""
    if references.is_last(reference):
        last: values.Parameters = {"since": "", "before": identity.ABOVE_ALL_IDS, "limit": 1}
        return references.newest(ids(connection, "ids_newest", last))
    prefix = references.prefix(reference)
    between: values.Parameters = {
        "from": prefix,
        "to": prefix + identity.ABOVE_ALL_IDS,
        "limit": references.NAMED + 1,
    }
    return references.only(reference, ids(connection, "ids_by_prefix", between))


def free_ids(connection: sqlite3.Connection, wanted: Wanted) -> list[RunId]:
    """Ids of the runs a worker would get by asking for a lease."""
    parameters: values.Parameters = {
        "now": values.micros(wanted.now),
        "states": _names(wanted.states),
        "limit": values.limit(wanted.limit),
    }
    if wanted.among is not None:
        given: values.Parameters = {
            "ids": json.dumps(list(wanted.among)),
            "urgent": int(wanted.urgent_only),
        }
        return ids(connection, "ids_free_among", {**parameters, **given})
    name = "ids_free_and_urgent" if wanted.urgent_only else "ids_free"
    return ids(connection, name, parameters)


def urgent(connection: sqlite3.Connection, worker: WorkerId, now: datetime) -> tuple[Run, ...]:
    """Runs that a worker holds and must see to."""
    chosen: values.Parameters = {"worker": values.storable(worker), "now": values.micros(now)}
    return runs(connection, ids(connection, "ids_held_and_urgent", chosen))


def _names(states: Collection[RunState]) -> str:
    """Several states as one parameter."""
    return json.dumps(sorted({state.value for state in states}))


def run_by_key(connection: sqlite3.Connection, submitter: str, key: str) -> Run | None:
    """The run that a person submitted with a key, if there is one."""
    chosen = {"submitter": values.storable(submitter), "submission_key": values.storable(key)}
    found = ids(connection, "id_by_submission_key", chosen)
    return run(connection, found[0]) if found else None


def active(connection: sqlite3.Connection, limit: int) -> tuple[Run, ...]:
    """Runs that have not ended, oldest first."""
    return runs(connection, ids(connection, "ids_active", {"limit": values.limit(limit)}))


def counts(connection: sqlite3.Connection) -> Mapping[RunState, int]:
    """How many runs are in each state."""
    return {RunState(state): count for state, count in connection.execute(_SQL["counts"])}


def events(
    connection: sqlite3.Connection, run_id: RunId, after: int, limit: int
) -> tuple[Event, ...]:
    """Events with a number above ``after``, in order."""
    parameters = {
        "id": values.storable(run_id),
        "after": values.integer(after),
        "limit": values.limit(limit),
    }
    found = connection.execute(_SQL["events"], parameters).fetchall()
    if not found:
        known_row(connection, run_id)
    return tuple(rows.event(run_id, each) for each in found)


def document(connection: sqlite3.Connection, run_id: RunId) -> Document:
    """The exact descriptor of a run."""
    found = connection.execute(_SQL["document"], {"id": values.storable(run_id)}).fetchone()
    if found is None:
        raise transitions.not_found(run_id)
    return documents.document(found)


def plan(connection: sqlite3.Connection, run_id: RunId) -> str:
    """The plan of a run that has not ended."""
    found = connection.execute(_SQL["plan"], {"id": values.storable(run_id)}).fetchone()
    if found is None:
        raise transitions.plan_forgotten(run(connection, run_id))
    return str(found[0])


def fingerprint(connection: sqlite3.Connection, run_id: RunId) -> Fingerprint | None:
    """The environment a run had, once it is known."""
    found = connection.execute(_SQL["fingerprint"], {"id": values.storable(run_id)}).fetchone()
    if found is None:
        known_row(connection, run_id)
        return None
    return Fingerprint(machine=found[0], moment=found[1])


def summaries(connection: sqlite3.Connection, run_id: RunId) -> tuple[Summary, ...]:
    """The statistics of a run's metrics."""
    found = connection.execute(_SQL["summaries"], {"id": values.storable(run_id)}).fetchall()
    if not found:
        known_row(connection, run_id)
    return tuple(map(rows.summary, found))


def data_version(connection: sqlite3.Connection) -> int:
    """A number that changes when another connection has committed."""
    [[version]] = connection.execute(_SQL["data_version"])
    return int(version)
