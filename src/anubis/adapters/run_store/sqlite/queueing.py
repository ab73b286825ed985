"""Questions of the queue, as functions of a connection: who is next, who is ahead, how many wait.

They cost by the number of groups (a person's runs of one benchmark), not by the runs that wait.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from datetime import datetime

from anubis.adapters.run_store import ordering
from anubis.adapters.run_store.sqlite import queries, rows
from anubis.domain.run import Run, RunState


def _sql(name: str) -> str:
    return queries.load("queueing.sql")[name]


def heads(
    connection: sqlite3.Connection, now: datetime, states: Collection[RunState], each: int
) -> tuple[Run, ...]:
    """The first free runs of every group; see the port."""
    wanted = {"now": rows.micros(now), "states": _names(states), "each": max(0, each)}
    found = map(rows.run, connection.execute(_sql("heads"), wanted))
    return ordering.heads(found, each)


def ahead(
    connection: sqlite3.Connection, run: Run, states: Collection[RunState], limit: int
) -> int:
    """How many leave the queue before ``run``; see the port."""
    place = {
        "priority": run.priority,
        "id": rows.storable(run.id),
        "states": _names(states),
        "limit": max(0, limit),
    }
    [[count]] = connection.execute(_sql("ahead"), place)
    return int(count)


def active_of(connection: sqlite3.Connection, submitter: str, limit: int) -> int:
    """How many runs of a person have not ended; see the port."""
    asked = {"submitter": rows.storable(submitter), "limit": max(0, limit)}
    [[count]] = connection.execute(_sql("active_of"), asked)
    return int(count)


def _names(states: Collection[RunState]) -> str:
    return json.dumps(sorted({state.value for state in states}))
