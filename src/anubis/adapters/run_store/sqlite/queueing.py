"""Questions of the queue, as functions of a connection: who is next, who is ahead, how many wait.

They cost by the number of groups (a person's runs of one benchmark on one engine), not by the runs
that wait.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from datetime import datetime

from anubis.adapters.run_store import ordering
from anubis.adapters.run_store.sqlite import rows
from anubis.adapters.sqlite import queries, values
from anubis.domain.run import Run, RunState

_SQL = queries.Queries(__file__, "queueing.sql")


def heads(
    connection: sqlite3.Connection, now: datetime, states: Collection[RunState], each: int
) -> tuple[Run, ...]:
    """The first free runs of every group; see the port."""
    wanted = {"now": values.micros(now), "states": _names(states), "each": values.limit(each)}
    found = map(rows.run, connection.execute(_SQL["heads"], wanted))
    return ordering.heads(found, each)


def ahead(
    connection: sqlite3.Connection, run: Run, states: Collection[RunState], limit: int
) -> int:
    """How many leave the queue before ``run``; see the port."""
    place = {
        "engine": values.storable(run.engine),
        "priority": run.priority,
        "id": values.storable(run.id),
        "states": _names(states),
        "limit": values.limit(limit),
    }
    [[count]] = connection.execute(_SQL["ahead"], place)
    return int(count)


def active_of(connection: sqlite3.Connection, submitter: str, limit: int) -> int:
    """How many runs of a person have not ended; see the port."""
    asked = {"submitter": values.storable(submitter), "limit": values.limit(limit)}
    [[count]] = connection.execute(_SQL["active_of"], asked)
    return int(count)


def _names(states: Collection[RunState]) -> str:
    return json.dumps(sorted({state.value for state in states}))
