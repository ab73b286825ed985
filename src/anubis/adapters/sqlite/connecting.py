"""Open connections the same way everywhere, and translate what SQLite says into our errors.

WAL lets readers go on while one process writes; ``synchronous=FULL`` makes a commit survive a
power cut, which NORMAL does not promise in WAL mode.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import sqlite3
import time
from collections.abc import Iterator

from anubis.domain import errors

PATIENCE = 10.0
"""Seconds to wait for another process that is writing. Its transactions take milliseconds; ten
seconds bridge a disk that stalls."""

_BETWEEN_TRIES = 0.001
"""Seconds. A transaction takes a few milliseconds."""

OLDEST_SQLITE = (3, 37, 0)
"""STRICT tables came with 3.37; Debian 12 and Ubuntu 22.04 have it."""

_UNUSABLE = {
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_NOTADB: "is not a store: the file holds something else",
    sqlite3.SQLITE_READONLY: "may not be written by this user",
    sqlite3.SQLITE_PERM: "may not be used by this user",
    sqlite3.SQLITE_AUTH: "may not be used by this user",
}
_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: f"is held by another process for more than {PATIENCE:.0f} s",
    sqlite3.SQLITE_LOCKED: f"is held by another process for more than {PATIENCE:.0f} s",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full; free some space and try again",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk reports an error",
    sqlite3.SQLITE_NOMEM: "cannot be read: there is not enough memory",
    sqlite3.SQLITE_INTERRUPT: "was interrupted",
}


def connect(path: pathlib.Path) -> sqlite3.Connection:
    """Open a connection with every setting we rely on. Raises what ``explained`` raises."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise errors.StoreUnusable(
            f"the store needs SQLite 3.37 or newer; this Python has {sqlite3.sqlite_version}"
        )
    with explained(path):
        _make_private(path)
        connection = sqlite3.connect(
            path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            _set_up(connection)
        except sqlite3.Error:
            connection.close()
            raise
    return connection


def _make_private(path: pathlib.Path) -> None:
    """Make the file before SQLite does, which would let others read it: plans hold secrets.

    What SQLite writes beside it gets the same mode. Any failure is told better by SQLite. A file
    that exists is never opened here: closing it would, as POSIX has it, drop the locks of every
    connection this process has to it, and the next process to leave would delete their changes.
    """
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _set_up(connection: sqlite3.Connection) -> None:
    _enter_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # A plan may hold secrets: what is deleted is overwritten, not only unlinked.
    connection.execute("PRAGMA secure_delete = ON")


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL; the switch alone does not honour SQLite's own waiting."""
    _patiently(connection, "PRAGMA journal_mode = WAL")


def begin(connection: sqlite3.Connection) -> None:
    """Start a transaction that writes, waiting for other processes that do.

    SQLite's own waiting backs off to 100 ms, and a busy process next door leaves the lock free for
    far less than that. Beside 64 submitters that never stop, the longest of some 500 waits was
    1.1 s; asking every millisecond made it 0.1 s.
    """
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        _patiently(connection, "BEGIN IMMEDIATE")
    finally:
        connection.execute(f"PRAGMA busy_timeout = {PATIENCE * 1000:.0f}")


def _patiently(connection: sqlite3.Connection, statement: str) -> None:
    give_up_at = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_at:
                raise
            time.sleep(_BETWEEN_TRIES)
        else:
            return


@contextlib.contextmanager
def explained(path: pathlib.Path) -> Iterator[None]:
    """Turn errors of SQLite into StoreUnusable or StoreUnavailable, in words."""
    try:
        yield
    except sqlite3.Error as error:
        raise explanation(error, path) from error


def explanation(error: sqlite3.Error, path: pathlib.Path) -> errors.AnubisError:
    """The error of ours that says what ``error`` means for the store at ``path``."""
    code = primary_code(error)
    if code == sqlite3.SQLITE_CANTOPEN:
        return errors.StoreUnusable(f"the store {path} cannot be opened: {_obstacle(path)}")
    if code in _UNAVAILABLE:
        return errors.StoreUnavailable(f"the store {path} {_UNAVAILABLE[code]} ({error})")
    return errors.StoreUnusable(f"the store {path} {_UNUSABLE.get(code, 'failed')} ({error})")


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's result code without its extension; misuse when Python itself raised the error."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF


def _obstacle(path: pathlib.Path) -> str:
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist"
    if path.is_dir():
        return "it is a folder"
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return f"the folder {path.parent} may not be written by this user"
    return "this user may not read or write it"
