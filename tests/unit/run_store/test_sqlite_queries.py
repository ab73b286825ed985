"""Every query is named, explained, used, and finds its rows by an index."""

from __future__ import annotations

import pathlib
import re
import sqlite3
from collections.abc import Iterator

import pytest

from anubis.adapters.run_store.sqlite import connecting, migrating, queries

FOLDER = pathlib.Path(queries.__file__).parent
FILES = ("reading.sql", "queueing.sql", "history.sql", "changing.sql")
ALL = [(file, name) for file in FILES for name in queries.load(file)]


@pytest.fixture
def connection(tmp_path: pathlib.Path) -> Iterator[sqlite3.Connection]:
    connection = connecting.connect(tmp_path / "a.db")
    migrating.migrate(connection, tmp_path / "a.db")
    yield connection
    connection.close()


def plan(connection: sqlite3.Connection, sql: str) -> list[str]:
    values = dict.fromkeys(re.findall(r":(\w+)", sql), 1)
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


@pytest.mark.parametrize(("file", "name"), ALL)
def test_no_query_scans_a_table(connection: sqlite3.Connection, file: str, name: str) -> None:
    small = {"counts", "delete_lone_machines", "data_version", "last_sequence"}
    sql = queries.load(file)[name]
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    scans = [step for step in plan(connection, sql) if step.startswith("SCAN")]
    walks = [step for step in scans if step.split()[1] in tables and not is_short(step)]
    assert not walks or name in small


def is_short(step: str) -> bool:
    """Whether it reads, in its order, an index of those runs only that have not ended."""
    return "COVERING INDEX run_active" in step or "COVERING INDEX run_waiting" in step


@pytest.mark.parametrize("name", ["heads", "ahead"])
def test_the_queue_leaps_from_group_to_group(connection: sqlite3.Connection, name: str) -> None:
    steps = plan(connection, queries.load("queueing.sql")[name])
    assert any("(submitter=? AND benchmark>?)" in step for step in steps)
    assert any("(submitter>?)" in step for step in steps)
    assert not any("TEMP B-TREE" in step for step in steps)


FEW = {"ids_free_and_urgent", "ids_free_among"}  # look at a few runs, and sort them
LISTS = [name for _, name in ALL if name.startswith("ids_") and name not in FEW]


@pytest.mark.parametrize("name", LISTS)
def test_pages_are_read_in_order_from_an_index_that_covers_them(
    connection: sqlite3.Connection, name: str
) -> None:
    steps = plan(connection, queries.load("reading.sql")[name])
    assert any("COVERING INDEX" in step or "PRIMARY KEY" in step for step in steps)
    assert not any("TEMP B-TREE FOR ORDER BY" in step for step in steps)


@pytest.mark.parametrize(("file", "name"), ALL)
def test_every_query_is_explained_and_used(file: str, name: str) -> None:
    text = (FOLDER / file).read_text()
    assert re.search(rf"-- name: {name}\n-- [A-Z].*\.\n", text), "a sentence is missing"
    code = "".join(module.read_text() for module in FOLDER.glob("*.py"))
    assert f'"{name}"' in code, "nobody uses it"


def test_user_text_is_never_a_pattern() -> None:
    for file in FILES:
        assert not re.search(r"\b(LIKE|GLOB|OFFSET)\b", (FOLDER / file).read_text())


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [int(file.name.split("_")[0]) for file in migrating.migrations()]
    assert numbers == list(range(1, len(numbers) + 1))
