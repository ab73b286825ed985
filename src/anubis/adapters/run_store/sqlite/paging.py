"""Pages of runs, newest first, at a cost that follows the page and not the store.

Each filter has an index that ends in the id, so one filter is one range of one index. Several
filters are several sorted streams of ids, and what they share is found by leaping: ask each stream
for its newest id below a bound, lower the bound to the oldest answer, repeat. The work is bounded
by the rarest filter, where scanning the rows of one filter for the others would be unbounded.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import sqlite3
from collections.abc import Iterator, Sequence

from anubis.adapters.run_store import references
from anubis.adapters.run_store.sqlite import reading
from anubis.adapters.sqlite import values
from anubis.domain.run import Run, RunId
from anubis.ports.run_reader import RunQuery


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Stream:
    """The ids one filter lets pass, newest first: the union of one query's answers."""

    query: str
    values: Sequence[values.Parameters]  #: one of these must hold, e.g. one of several states

    def within(
        self, connection: sqlite3.Connection, bounds: references.Bounds, limit: int
    ) -> list[RunId]:
        """The newest ids within ``bounds``."""
        shared: values.Parameters = {
            "since": bounds.start,
            "before": values.storable(bounds.end),
            "limit": limit,
        }
        parts = [reading.ids(connection, self.query, {**value, **shared}) for value in self.values]
        return list(itertools.islice(heapq.merge(*parts, reverse=True), limit))


def is_quick(query: RunQuery) -> bool:
    """Whether the page is one range of an index, and needs no thread."""
    return len(_streams(query)) <= 1


def page(connection: sqlite3.Connection, query: RunQuery) -> Sequence[Run]:
    """The runs that ``query`` asks for, as they all were at one moment."""
    connection.execute("BEGIN")
    try:
        return reading.runs(connection, _ids(connection, query))[::-1]
    finally:
        if connection.in_transaction:  # not after an error that ended it
            connection.execute("COMMIT")


def _ids(connection: sqlite3.Connection, query: RunQuery) -> list[RunId]:
    streams = _streams(query) or [_Stream(query="ids_newest", values=[{}])]
    bounds = references.bounds(query)
    limit = values.limit(query.limit)
    if len(streams) == 1:
        return streams[0].within(connection, bounds, limit)
    return list(itertools.islice(_shared(connection, streams, bounds), limit))


def _streams(query: RunQuery) -> list[_Stream]:
    states: list[values.Parameters] = [{"state": state.value} for state in set(query.states)]
    streams = []
    if query.benchmark is not None:
        benchmark = {"benchmark": values.storable(query.benchmark)}
        if states:
            both = [{**benchmark, **state} for state in states]
            streams.append(_Stream(query="ids_by_benchmark_and_state", values=both))
        else:
            streams.append(_Stream(query="ids_by_benchmark", values=[benchmark]))
    elif states:
        streams.append(_Stream(query="ids_by_state", values=states))
    if query.family is not None:
        family = {"family": values.storable(query.family)}
        streams.append(_Stream(query="ids_by_family", values=[family]))
    if query.submitter is not None:
        submitter = {"submitter": values.storable(query.submitter)}
        streams.append(_Stream(query="ids_by_submitter", values=[submitter]))
    for name, value in set(query.labels):
        label = {"name": values.storable(name), "value": values.storable(value)}
        streams.append(_Stream(query="ids_by_label", values=[label]))
    return streams


def _shared(
    connection: sqlite3.Connection, streams: Sequence[_Stream], bounds: references.Bounds
) -> Iterator[RunId]:
    """The ids that all streams have, newest first."""
    while True:
        heads = [stream.within(connection, bounds, 1) for stream in streams]
        if not all(heads):
            return
        oldest = min(head[0] for head in heads)
        if all(head[0] == oldest for head in heads):
            yield oldest
            bounds = dataclasses.replace(bounds, end=oldest)
        else:  # sorts just above that id, so that it is asked for again
            bounds = dataclasses.replace(bounds, end=f"{oldest}~")
