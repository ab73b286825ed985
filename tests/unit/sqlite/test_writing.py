"""The writer acknowledges only what is durable, and one bad change harms no other."""

from __future__ import annotations

import asyncio
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from anubis.adapters.run_store.sqlite import SqliteRunStore
from anubis.adapters.sqlite import Database, connecting, writing
from anubis.domain import errors
from anubis.domain.run import RunId, RunState, WorkerId
from anubis.ports.run_store import Step
from anubis.testing import builders
from anubis.testing.clock import NOON
from anubis.testing.contracts.run_store.given import ANNA, a_leased_run, add, an_ended_run, take

ADD_UNTIL_KILLED = """
import asyncio, dataclasses, pathlib, secrets, sys
from datetime import UTC, datetime
from anubis.adapters.run_store.sqlite import SqliteRunStore
from anubis.domain import identity
from anubis.testing import builders

async def add_for_ever(store):
    while True:
        now = datetime.now(UTC)
        run_id = identity.run_id(now, secrets.token_bytes(10))
        run = dataclasses.replace(builders.a_run(), id=run_id)
        await store.add(run, builders.a_document(), builders.PLAN, "submitted")
        print(run_id, flush=True)

async def main():
    async with SqliteRunStore.open(pathlib.Path(sys.argv[1])) as store:
        await asyncio.gather(*(add_for_ever(store) for _ in range(8)))

asyncio.run(main())
"""


def rows_of(path: pathlib.Path) -> dict[str, int]:
    """How many rows each table has, tables without rows left out."""
    connection = sqlite3.connect(path)
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    counted = {
        name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for (name,) in tables
    }
    connection.close()
    return {name: count for name, count in counted.items() if count}


def add_until_killed(path: pathlib.Path, seconds: float) -> list[RunId]:
    """Start a process that adds runs, kill it, and give the ids it was told are stored."""
    command = [sys.executable, "-c", ADD_UNTIL_KILLED, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGKILL)
        lines = [first, *process.stdout]
    return [RunId(line.strip()) for line in lines if line.endswith("\n")]


async def test_a_killed_writer_loses_no_run_it_acknowledged(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.db"
    acknowledged: list[RunId] = []
    for _ in range(4):
        seconds = random.uniform(0.0, 0.3)
        acknowledged += await asyncio.to_thread(add_until_killed, path, seconds)
    assert len(acknowledged) > 4
    async with SqliteRunStore.open(path) as store:
        for run_id in acknowledged:
            assert (await store.get(run_id)).id == run_id
            assert len(await store.events(run_id)) == 1
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute(
        "SELECT (SELECT count(*) FROM run) = (SELECT sum(runs) FROM state_count)"
    ).fetchone() == (1,)
    connection.close()


async def test_many_changes_share_one_commit(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.db"
    async with SqliteRunStore.open(path) as store:
        await add(store, builders.a_run(999))
        other = connecting.connect(path)
        other.execute("BEGIN IMMEDIATE")  # the writer waits, the others queue up behind it
        adding = [asyncio.create_task(add(store, builders.a_run(n))) for n in range(50)]
        await asyncio.sleep(0.05)
        seen = [store.change_token()]
        other.execute("ROLLBACK")
        other.close()
        while not all(task.done() for task in adding):
            await asyncio.sleep(0)
            seen.append(store.change_token())
        assert len(set(seen)) <= 3


async def test_a_change_that_fails_half_way_is_undone_and_its_neighbours_are_kept(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "a.db"
    connection = connecting.connect(path)
    connection.execute("CREATE TABLE kept (number INTEGER)")

    def change(number: int) -> writing.Change[int]:
        def make(connection: sqlite3.Connection) -> int:
            connection.execute("INSERT INTO kept VALUES (?)", [number])
            if number == 2:
                raise errors.LeaseLost("two")
            if number == 3:
                connection.execute("SELECT * FROM nowhere")
            if number == 4:
                raise ZeroDivisionError
            return number

        return make

    writer = writing.Writer(path)
    answers = await asyncio.gather(
        *(writer.do(change(number)) for number in range(6)), return_exceptions=True
    )
    await writer.close()
    assert [answers[number] for number in (0, 1, 5)] == [0, 1, 5]
    kinds = [type(answers[number]) for number in (2, 3, 4)]
    assert kinds == [errors.LeaseLost, errors.StoreUnusable, ZeroDivisionError]
    assert connection.execute("SELECT number FROM kept").fetchall() == [(0,), (1,), (5,)]
    connection.close()


async def test_a_full_disk_is_named_and_nothing_of_the_group_is_kept(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "a.db"
    async with Database.open(path) as database:
        store = SqliteRunStore(database)
        await add(store, builders.a_run(0))
        document = builders.a_document(b"x" * 1_000_000)
        await database.do(lambda connection: connection.execute("PRAGMA max_page_count = 60"))
        large = builders.a_run(1, document=document)
        answers = await asyncio.gather(
            add(store, builders.a_run(2)),
            store.add(large, document, builders.PLAN, ""),
            return_exceptions=True,
        )
        assert isinstance(answers[1], errors.StoreUnavailable)
        assert "disk is full" in str(answers[1])
        with pytest.raises(errors.RunNotFound):
            await store.get(large.id)
        await database.do(lambda connection: connection.execute("PRAGMA max_page_count = 99999"))
        await store.add(large, document, builders.PLAN, "")
        assert await store.document(large.id) == document


async def test_a_store_held_by_another_process_is_unavailable_and_works_later(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "PATIENCE", 0.05)
    path = tmp_path / "a.db"
    async with SqliteRunStore.open(path) as store:
        other = connecting.connect(path)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(errors.StoreUnavailable, match="held by another process"):
            await add(store, builders.a_run())
        assert await store.counts() == {}, "readers do not wait for writers"
        other.execute("ROLLBACK")
        other.close()
        await add(store, builders.a_run())
        assert await store.counts() == {RunState.SUBMITTED: 1}


async def test_reading_starts_no_thread_and_closing_ends_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.db"

    def writers() -> list[str]:
        return [each.name for each in threading.enumerate() if each.name.startswith("writer of")]

    async with SqliteRunStore.open(path) as store:
        assert await store.counts() == {}
        assert await take(store) == []
        assert writers() == []
        await add(store, builders.a_run())
        assert len(writers()) == 1
    assert writers() == []


async def test_what_was_asked_for_is_done_before_the_store_closes(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.db"
    async with SqliteRunStore.open(path) as store:
        adding = [asyncio.create_task(add(store, builders.a_run(n))) for n in range(20)]
        await asyncio.sleep(0)
    await asyncio.gather(*adding)
    assert rows_of(path)["run"] == 20
    with pytest.raises(errors.StoreUnavailable, match="closed"):
        await add(store, builders.a_run(99))
    with pytest.raises(errors.AnubisError):
        await store.counts()


async def test_a_caller_that_stops_waiting_harms_nobody(tmp_path: pathlib.Path) -> None:
    async with SqliteRunStore.open(tmp_path / "a.db") as store:
        adding = [asyncio.create_task(add(store, builders.a_run(n))) for n in range(20)]
        await asyncio.sleep(0)
        for task in adding[::2]:
            task.cancel()
        await asyncio.gather(*adding, return_exceptions=True)
        for number in range(1, 20, 2):
            assert (await store.get(builders.a_run_id(number))).id


async def test_a_purged_run_leaves_no_row_anywhere(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.db"
    async with SqliteRunStore.open(path) as store:
        run = builders.a_run(labels={"team": "vision"}, family="nightly")
        await add(store, run)
        await take(store)
        findings = Step(
            run_id=run.id,
            fingerprint=builders.a_fingerprint(),
            summaries=[builders.a_summary()],
            notes=[builders.a_note()],
        )
        await store.apply(ANNA, findings)
        await store.request_cancel(run.id, now=NOON, by="user")
        await store.apply(ANNA, builders.a_step(run.id, RunState.CANCELED))
        await store.delete(run.id)
    assert set(rows_of(path)) == {"state_count", "sqlite_sequence"}


async def test_documents_and_machines_are_kept_once_however_many_runs_share_them(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "a.db"
    async with SqliteRunStore.open(path) as store:
        for number in range(3):
            run_id = await a_leased_run(store, number)
            found = builders.a_fingerprint(moment=f"{number}")
            await store.apply(ANNA, Step(run_id=run_id, fingerprint=found))
    counted = rows_of(path)
    assert (counted["document"], counted["machine"], counted["fingerprint"]) == (1, 1, 3)


async def test_the_secrets_of_a_plan_are_gone_from_the_file_when_the_run_has_ended(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "a.db"
    async with SqliteRunStore.open(path) as store:
        run = builders.a_run()
        await store.add(run, builders.a_document(), "token=hunter2 " * 1000, "")
        await take(store)
        await store.apply(ANNA, builders.a_step(run.id, RunState.ERROR))
    assert b"hunter2" not in path.read_bytes()


async def test_ended_runs_weigh_nothing_on_leases(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.db"
    async with SqliteRunStore.open(path) as store:
        for number in range(3):
            await an_ended_run(store, number)
        await add(store, builders.a_run(9))
        got = await store.lease(
            WorkerId("w"), now=NOON, duration=builders.HOUR, states=set(RunState), limit=9
        )
    assert [run.id for run in got] == [builders.a_run_id(9)]
