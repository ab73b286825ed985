"""Every query is named, explained, used, and finds its rows by an index."""

from __future__ import annotations

import pathlib
import re
import sqlite3
from collections.abc import Iterator

import pytest

import anubis.adapters
from anubis.adapters.sqlite import connecting, migrating, queries

ADAPTERS = pathlib.Path(anubis.adapters.__file__).parent
FILES = [path for path in ADAPTERS.rglob("*.sql") if path.parent.name != "migrations"]
QUERIES = {
    f"{path.relative_to(ADAPTERS)}:{name}": sql
    for path in FILES
    for name, sql in queries.load(path).items()
}


@pytest.fixture
def connection(tmp_path: pathlib.Path) -> Iterator[sqlite3.Connection]:
    connection = connecting.connect(tmp_path / "a.db")
    migrating.migrate(connection, tmp_path / "a.db")
    yield connection
    connection.close()


def plan(connection: sqlite3.Connection, sql: str) -> list[str]:
    values = dict.fromkeys(re.findall(r":(\w+)", sql), 1)
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


SMALL = {"counts", "delete_lone_machines", "data_version", "last_sequence", "tokens", "scripts"}


@pytest.mark.parametrize("query", QUERIES)
def test_no_query_scans_a_table(connection: sqlite3.Connection, query: str) -> None:
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    scans = [step for step in plan(connection, QUERIES[query]) if step.startswith("SCAN")]
    walks = [step for step in scans if step.split()[1] in tables and not is_short(step)]
    assert not walks or query.partition(":")[2] in SMALL


def is_short(step: str) -> bool:
    """Whether it reads, in its order, an index of those runs only that have not ended."""
    return "COVERING INDEX run_active" in step or "COVERING INDEX run_waiting" in step


@pytest.mark.parametrize("name", ["heads", "ahead"])
def test_the_queue_leaps_from_group_to_group(connection: sqlite3.Connection, name: str) -> None:
    steps = plan(connection, QUERIES[f"run_store/sqlite/queueing.sql:{name}"])
    assert any("(submitter=? AND benchmark>?)" in step for step in steps)
    assert any("(submitter>?)" in step for step in steps)
    assert not any("TEMP B-TREE" in step for step in steps)


FEW = ("ids_free_and_urgent", "ids_held_and_urgent", "ids_free_among")
"""Queries that look at a few runs, and sort them."""

LISTS = [query for query in QUERIES if ":ids_" in query and not query.endswith(FEW)]


@pytest.mark.parametrize("query", LISTS)
def test_pages_are_read_in_order_from_an_index_that_covers_them(
    connection: sqlite3.Connection, query: str
) -> None:
    steps = plan(connection, QUERIES[query])
    assert any("COVERING INDEX" in step or "PRIMARY KEY" in step for step in steps)
    assert not any("TEMP B-TREE FOR ORDER BY" in step for step in steps)


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_is_explained_and_used(query: str) -> None:
    file, _, name = query.partition(":")
    path = ADAPTERS / file
    assert re.search(rf"-- name: {name}\n-- [A-Z].*\.\n", path.read_text()), "a sentence is missing"
    code = "".join(module.read_text() for module in path.parent.glob("*.py"))
    assert f'"{name}"' in code, "nobody uses it"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ADAPTERS)))
def test_user_text_is_never_a_pattern(path: pathlib.Path) -> None:
    assert not re.search(r"\b(LIKE|GLOB|OFFSET)\b", path.read_text())


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [int(file.name.split("_")[0]) for file in migrating.migrations()]
    assert numbers == list(range(1, len(numbers) + 1))
