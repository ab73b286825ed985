"""A store that an older version of Anubis wrote keeps its runs, and their events get an order."""

from __future__ import annotations

import pathlib
import sqlite3
from collections.abc import Sequence

from anubis.adapters.run_store.sqlite import SqliteRunStore
from anubis.adapters.sqlite import migrating
from anubis.domain.demand import Demand
from anubis.domain.run import RunState
from anubis.ports.run_reader import RunQuery
from anubis.testing import builders
from anubis.testing.clock import NOON

NOON_MICROS = int(NOON.timestamp()) * 1_000_000

RUN = """
INSERT INTO run (key, id, state, version, benchmark, engine, descriptor_sha, submitter, labels,
    submitted_at, state_since, deadline, ended_at, outcome, events, document_name,
    document_directory)
VALUES (:key, :id, :state, 2, 'resnet', 'process', 'sha', 'user', '[]', :at, :at, :at, :ended_at,
    NULL, :events, x'61', x'62')
"""
EVENT = """
INSERT INTO event (run, number, at, kind, message, data)
VALUES (?, ?, ?, 'note', ?, '{"a": 1}')
"""

Told = tuple[int, int, str]  # number, seconds after noon, message


def write_version_1(path: pathlib.Path, *histories: Sequence[Told]) -> None:
    """A store as the first schema has it, with a run for each history; the last is not over."""
    connection = sqlite3.connect(path)
    connection.executescript(migrating.migrations()[0].read_text())
    connection.execute("INSERT INTO document (sha, content) VALUES ('sha', x'00')")
    for key, events in enumerate(histories, start=1):
        ended = key < len(histories)
        run = {
            "key": key,
            "id": builders.a_run_id(key),
            "state": "SUCCEEDED" if ended else "QUEUED",
            "at": NOON_MICROS,
            "ended_at": NOON_MICROS if ended else None,
            "events": len(events),
        }
        connection.execute(RUN, run)
        for number, second, message in events:
            at = NOON_MICROS + second * 1_000_000
            connection.execute(EVENT, (key, number, at, message))
    connection.execute(f"PRAGMA application_id = {migrating.APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()


async def test_events_of_an_older_store_are_fed_by_their_time(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.db"
    first = [(1, 0, "a1"), (2, 20, "a2")]
    second = [(1, 10, "b1"), (2, 20, "b2"), (3, 30, "b3")]
    write_version_1(path, first, second)
    async with SqliteRunStore.open(path) as store:
        feed = await store.feed(after=0)
        assert [event.message for event in feed] == ["a1", "b1", "a2", "b2", "b3"]
        assert [event.sequence for event in feed] == [1, 2, 3, 4, 5]
        assert await store.last_sequence() == 5
        assert await store.events(builders.a_run_id(1)) == (feed[0], feed[2])
        assert feed[0].data == {"a": 1}


async def test_a_clock_that_was_set_back_does_not_turn_a_history_around(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "a.db"
    write_version_1(path, [(1, 50, "a1"), (2, 0, "a2")], [(1, 10, "b1")])
    async with SqliteRunStore.open(path) as store:
        feed = await store.feed(after=0)
        assert [event.message for event in feed] == ["b1", "a1", "a2"]


async def test_runs_of_an_older_store_go_on_as_they_were(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.db"
    write_version_1(path, [(1, 0, "a1")], [(1, 0, "b1")])
    async with SqliteRunStore.open(path) as store:
        waiting, ended = await store.page(RunQuery(submitter="user"))
        assert (waiting.priority, waiting.demand) == (0, Demand())
        assert (await store.document(waiting.id)).script == ""
        assert await store.heads(now=NOON, states=[RunState.QUEUED], each=1) == (waiting,)
        await store.request_cancel(waiting.id, now=NOON, by="user")
        assert [event.number for event in await store.events(waiting.id)] == [1, 2]
        await store.delete(ended.id)
        assert await store.counts() == {RunState.QUEUED: 1}
        assert {event.run_id for event in await store.feed(after=0)} == {waiting.id}
