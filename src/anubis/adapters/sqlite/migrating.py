"""Bring the schema of a store to this version of Anubis, once, whoever comes first.

Migrations are numbered ``.sql`` files. All that are missing run in one transaction, together with
the new number in ``PRAGMA user_version``: a store is never half-way. Why this is not Alembic or
yoyo: docs/explanation/decisions/0002-migrations-by-user-version.md.
"""

from __future__ import annotations

import functools
import pathlib
import sqlite3
from collections.abc import Iterator, Sequence

from anubis.adapters.sqlite import connecting
from anubis.domain import errors

APPLICATION_ID = 0x416E7562
"""``Anub`` in ASCII. Tells our files from other SQLite files."""


@functools.cache
def migrations() -> Sequence[pathlib.Path]:
    """All migrations, in order; the first has number 1."""
    return sorted((pathlib.Path(__file__).parent / "migrations").glob("[0-9]*.sql"))


def is_current(connection: sqlite3.Connection, path: pathlib.Path) -> bool:
    """Whether nothing is to be done. Raises StoreUnusable for files we must not touch."""
    version = _pragma(connection, "user_version")
    _refuse_foreign(connection, path, version)
    if version > len(migrations()):
        raise errors.StoreUnusable(
            f"the store {path} was written by a newer version of Anubis (schema {version}, this "
            f"one knows {len(migrations())}): update Anubis, or use another home"
        )
    return version == len(migrations())


def migrate(connection: sqlite3.Connection, path: pathlib.Path) -> None:
    """Apply what is missing. Several processes may call this on one store at the same moment."""
    connecting.begin(connection)
    try:
        if not is_current(connection, path):  # another process may have been first
            _apply_missing(connection)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _apply_missing(connection: sqlite3.Connection) -> None:
    for file in migrations()[_pragma(connection, "user_version") :]:
        for statement in statements(file.read_text(encoding="utf-8")):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(migrations())}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def statements(script: str) -> Iterator[str]:
    """Cut a script into statements. ``executescript`` cannot be used: it commits first."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def _refuse_foreign(connection: sqlite3.Connection, path: pathlib.Path, version: int) -> None:
    if _pragma(connection, "application_id") == APPLICATION_ID:
        return
    [[tables]] = connection.execute("SELECT count(*) FROM sqlite_schema")
    if tables or version:
        raise errors.StoreUnusable(
            f"the store {path} is a database of another program: move it, or use another home"
        )


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    [[value]] = connection.execute(f"PRAGMA {name}")
    return int(value)
