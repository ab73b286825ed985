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
    small = {"counts", "delete_lone_machines", "data_version"}
    steps = plan(connection, queries.load(file)[name])
    scans = [step for step in steps if step.startswith("SCAN") and "json_each" not in step]
    # run_active holds only what is being worked on, and is read in its order
    walks = [step for step in scans if "COVERING INDEX run_active" not in step]
    assert not walks or name in small


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
