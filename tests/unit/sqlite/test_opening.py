"""A store opens, is made, is brought up to date, or says in a sentence why not."""

from __future__ import annotations

import asyncio
import os
import pathlib
import sqlite3
import subprocess
import sys

import pytest

from anubis.adapters.run_store.sqlite import SqliteRunStore
from anubis.adapters.sqlite import connecting, migrating
from anubis.domain import errors
from anubis.ports.run_reader import RunQuery
from anubis.testing import builders
from anubis.testing.contracts.run_store.given import add, an_ended_run

OPEN_AT_ONCE = """
import asyncio, pathlib, sys
from anubis.adapters.run_store.sqlite import SqliteRunStore
from anubis.testing import builders

async def main():
    print("ready", flush=True)
    sys.stdin.readline()
    async with SqliteRunStore.open(pathlib.Path(sys.argv[1])) as store:
        run = builders.a_run(int(sys.argv[2]))
        await store.add(run, builders.a_document(), builders.PLAN, "submitted")

asyncio.run(main())
"""


async def touch(path: pathlib.Path) -> None:
    async with SqliteRunStore.open(path) as store:
        await add(store, builders.a_run())


async def test_a_store_is_there_again_when_it_is_opened_again(tmp_path: pathlib.Path) -> None:
    await touch(tmp_path / "a.db")
    async with SqliteRunStore.open(tmp_path / "a.db") as store:
        assert await store.get(builders.a_run_id()) == builders.a_run()


async def test_commits_are_durable_and_readers_do_not_wait(tmp_path: pathlib.Path) -> None:
    async with SqliteRunStore.open(tmp_path / "a.db"):
        connection = connecting.connect(tmp_path / "a.db")
        [[mode]] = connection.execute("PRAGMA journal_mode")
        [[synchronous]] = connection.execute("PRAGMA synchronous")
        connection.close()
    assert (mode, synchronous) == ("wal", 2)


def test_many_processes_may_open_a_fresh_store_at_the_same_moment(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "fresh.db"
    command = [sys.executable, "-c", OPEN_AT_ONCE, str(path)]
    processes = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for number in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in processes:
        process.communicate(b"go\n", timeout=60)
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM run").fetchone() == (4,)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


async def test_a_store_of_a_newer_version_is_left_alone(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "newer.db"
    await touch(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(errors.StoreUnusable, match="newer version of Anubis"):
        await touch(path)


async def test_a_database_of_another_program_is_left_alone(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "firefox.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmark (id INTEGER)")
    connection.close()
    with pytest.raises(errors.StoreUnusable, match="another program"):
        await touch(path)


async def test_a_file_that_is_no_database_is_left_alone(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "letter.db"
    path.write_text("Dear store, " * 1000)
    with pytest.raises(errors.StoreUnusable, match="holds something else"):
        await touch(path)
    assert path.read_text().startswith("Dear store")


async def test_a_damaged_store_says_so(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "damaged.db"
    async with SqliteRunStore.open(path) as store:
        await add(store, *(builders.a_run(number) for number in range(200)))
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
    with pytest.raises(errors.StoreUnusable, match="is damaged"):
        async with SqliteRunStore.open(path) as store:
            await store.page(RunQuery())


async def test_a_missing_folder_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.StoreUnusable, match="nowhere does not exist"):
        await touch(tmp_path / "nowhere" / "a.db")


async def test_a_folder_in_place_of_the_file_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.StoreUnusable, match="it is a folder"):
        await touch(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_without_permission_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(errors.StoreUnusable, match="may not be written"):
        await touch(tmp_path / "locked" / "a.db")


async def test_an_old_sqlite_is_named(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 30, 0))
    with pytest.raises(errors.StoreUnusable, match="needs SQLite"):
        await touch(tmp_path / "a.db")


async def test_a_migration_that_fails_leaves_the_store_as_it_was(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    await touch(path)
    broken = tmp_path / "9999_broken.sql"
    broken.write_text("CREATE TABLE half (way INTEGER);\nCREATE TABLE run (again INTEGER);\n")
    files = [*migrating.migrations(), broken]
    with monkeypatch.context() as patched:
        patched.setattr(migrating, "migrations", lambda: files)
        with pytest.raises(errors.StoreUnusable, match="already exists"):
            await touch(path)
    connection = sqlite3.connect(path)
    assert not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'half'").fetchall()
    connection.close()
    await touch(path)


async def test_an_older_store_is_brought_up_to_date_with_its_runs(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    async with SqliteRunStore.open(path) as store:
        run_id = await an_ended_run(store)
    added = tmp_path / "9999_more.sql"
    added.write_text("-- A comment; with a semicolon.\nCREATE TABLE more (way INTEGER) STRICT;\n")
    files = [*migrating.migrations(), added]
    monkeypatch.setattr(migrating, "migrations", lambda: files)
    for _ in range(2):
        async with SqliteRunStore.open(path) as store:
            assert (await store.get(run_id)).state.is_terminal
            connection = connecting.connect(path)
            assert connection.execute("PRAGMA user_version").fetchone() == (len(files),)
            assert connection.execute("SELECT * FROM more").fetchall() == []
            connection.close()


async def test_opening_twice_in_one_process_is_fine(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.db"
    async with SqliteRunStore.open(path) as one, SqliteRunStore.open(path) as two:
        token = two.change_token()
        await asyncio.gather(
            *(add(store, builders.a_run(number)) for number, store in enumerate((one, two) * 10))
        )
        assert len(await one.page(RunQuery())) == len(await two.page(RunQuery())) == 20
        assert two.change_token() != token


async def test_others_may_not_read_the_store(tmp_path: pathlib.Path) -> None:
    """Also where somebody made the home readable for all: plans hold environments."""
    path = tmp_path / "runs.db"
    async with SqliteRunStore.open(path) as store:
        await store.add(builders.a_run(), builders.a_document(), builders.PLAN, "submitted")
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    assert len(modes) == 3


VISITOR = """
import asyncio, pathlib, sys
from anubis.adapters.run_store.sqlite import SqliteRunStore
async def visit():
    async with SqliteRunStore.open(pathlib.Path(sys.argv[1])) as store:
        print(sum((await store.counts()).values()))
asyncio.run(visit())
"""


async def test_another_process_that_leaves_takes_nothing_with_it(tmp_path: pathlib.Path) -> None:
    """The last to leave deletes the journal of changes. It must not think that it is the last,
    as it would if we dropped our locks by closing the file behind SQLite's back."""
    path = tmp_path / "runs.db"
    async with SqliteRunStore.open(path) as store:
        for count in range(1, 4):
            run = builders.a_run(count)
            await store.add(run, builders.a_document(), builders.PLAN, "submitted")
            async with SqliteRunStore.open(path):  # one more connection of this process
                pass
            visitor = await asyncio.to_thread(
                subprocess.run,
                [sys.executable, "-c", VISITOR, str(path)],
                capture_output=True,
                text=True,
            )
            assert visitor.stdout == f"{count}\n", visitor.stderr
