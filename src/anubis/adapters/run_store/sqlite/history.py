"""Questions about many runs together, as functions of a connection; see the port of this name."""

from __future__ import annotations

import sqlite3

from anubis.adapters.run_store.sqlite import rows
from anubis.adapters.sqlite import queries, values
from anubis.domain import identity
from anubis.domain.event import Event
from anubis.ports.history import MOST_COUNTED, Group, TrendPoint, TrendQuery

_SQL = queries.Queries(__file__, "history.sql")


def benchmarks(connection: sqlite3.Connection, after: str, limit: int) -> tuple[Group, ...]:
    """Benchmarks with runs, by name."""
    return _groups(connection, "benchmarks", after, limit)


def families(connection: sqlite3.Connection, after: str, limit: int) -> tuple[Group, ...]:
    """Families with runs, by name."""
    return _groups(connection, "families", after, limit)


def _groups(
    connection: sqlite3.Connection, query: str, after: str, limit: int
) -> tuple[Group, ...]:
    asked = {"after": values.storable(after), "most": MOST_COUNTED, "limit": values.limit(limit)}
    found = connection.execute(_SQL[query], asked)
    return tuple(Group(name=name, runs=runs, newest=newest) for name, runs, newest in found)


def trend(connection: sqlite3.Connection, query: TrendQuery) -> tuple[TrendPoint, ...]:
    """The points of a trend line, newest first."""
    asked: values.Parameters = {
        "benchmark": values.storable(query.benchmark),
        "metric": values.storable(query.metric),
        "unit": None if query.unit is None else values.storable(query.unit),
        "before": values.storable(query.before or identity.ABOVE_ALL_IDS),
        "limit": values.limit(query.limit),
    }
    return tuple(map(rows.trend_point, connection.execute(_SQL["trend"], asked)))


def feed(connection: sqlite3.Connection, after: int, limit: int) -> tuple[Event, ...]:
    """Events of all runs, in the order they were stored."""
    asked = {"after": values.integer(after), "limit": values.limit(limit)}
    return tuple(map(rows.feed_event, connection.execute(_SQL["feed"], asked)))


def last_sequence(connection: sqlite3.Connection) -> int:
    """The sequence of the newest event ever stored."""
    found = connection.execute(_SQL["last_sequence"]).fetchone()
    return 0 if found is None else int(found[0])
