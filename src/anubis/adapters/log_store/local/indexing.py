"""The full-text index of a sealed log: which frames can hold a text.

A contentless FTS5 table with a document per frame and without positions: the smallest index
that SQLite can build, at about the speed of the compression. It only names candidates; the
reader looks into the frames. Tokens are runs of ASCII letters and digits and of bytes above
127, letter case ignored (the ``ascii`` tokenizer).

The text that is searched for may begin and end in the middle of a token of the log. A token of
it that touches its end is looked up as a prefix. For one that touches its beginning, all words
of the log that end with it (or contain it, if it is all there is) are looked up; to this end the
index lists the distinct tokens that are not mere digits, of which even large logs have few.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from anubis.adapters.log_store.local import files, frame, reading

_TOKEN = re.compile(rb"[0-9A-Za-z\x80-\xff]+")
_MOST_WORDS = 100
"""Words looked up for one that is cut off. With more, most frames would be candidates anyway."""

_LONGEST_TOKEN = 1000
"""FTS5 cuts tokens at 32 KiB; far below, a token of ours is the token of the index."""


def build(paths: files.LogFiles) -> None:
    """Index a finished log. Until it is complete, readers do not see the index."""
    log = reading.LogFile.open(paths.log)
    if log is None:
        return
    os.close(files.create(paths.new_index))
    with log, contextlib.closing(sqlite3.connect(paths.new_index)) as database:
        database.executescript(
            """
            PRAGMA journal_mode = OFF;
            PRAGMA synchronous = OFF;
            PRAGMA page_size = 16384;
            CREATE TABLE log (name BLOB NOT NULL);
            CREATE TABLE words (word BLOB NOT NULL);
            CREATE VIRTUAL TABLE frames
            USING fts5(text, content='', columnsize=0, detail=none, tokenize='ascii');
            """
        )
        with database:
            database.execute("INSERT INTO log (name) VALUES (?)", (log.name,))
            database.executemany("INSERT INTO frames (rowid, text) VALUES (?, ?)", _documents(log))
            database.execute(
                "CREATE VIRTUAL TABLE temp.tokens USING fts5vocab(main, 'frames', 'row')"
            )
            database.execute(
                "INSERT INTO words (word) SELECT CAST(term AS BLOB) FROM temp.tokens "
                "WHERE term GLOB '*[^0-9]*'"
            )
    _put_in_place(paths)


def _documents(log: reading.LogFile) -> Iterator[tuple[int, memoryview]]:
    for position, header in enumerate(log.headers()):
        yield position, frame.text_of(header, log.content(header))


def _put_in_place(paths: files.LogFiles) -> None:
    descriptor = os.open(paths.new_index, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)  # half an index would hide lines; a log without one is only slower
    finally:
        os.close(descriptor)
    paths.new_index.rename(paths.index)


def candidates(path: Path, log_name: bytes, wanted: bytes) -> Sequence[int] | None:
    """Positions of the frames that can hold ``wanted``, in order.

    None means that all can: there is no index for this log, or it cannot tell.
    """
    if not _TOKEN.search(wanted) or not path.exists():
        return None
    try:
        address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
            if database.execute("SELECT name FROM log").fetchone() != (log_name,):
                return None
            return _lookup(database, wanted)
    except sqlite3.Error:  # deleted or damaged meanwhile: the log itself is still there
        return None


def _lookup(database: sqlite3.Connection, wanted: bytes) -> Sequence[int] | None:
    conditions = []
    for token in _TOKEN.finditer(wanted):
        at_end = token.end() == len(wanted)
        if token.start() == 0:
            words = _words(database, token.group().lower(), anywhere=at_end)
        else:
            words = [token.group() + b"*"] if at_end else [token.group()]
        if words is not None and not words:
            return ()  # no token of the log fits, so no line does
        condition = _any_of(words) if words else None
        if condition is not None:
            conditions.append(condition)
    if not conditions:
        return None
    rows = database.execute(
        "SELECT rowid FROM frames WHERE frames MATCH ? ORDER BY rowid", (" AND ".join(conditions),)
    )
    return [position for (position,) in rows]


def _words(database: sqlite3.Connection, part: bytes, *, anywhere: bool) -> list[bytes] | None:
    """The words of the log that end with ``part`` or have it anywhere; None if too many do."""
    if part.isdigit():  # numbers are not listed
        return None
    condition = "instr(word, ?)" if anywhere else "substr(word, -length(?1)) = ?1"
    rows = database.execute(
        f"SELECT word FROM words WHERE {condition} LIMIT {_MOST_WORDS + 1}",  # noqa: S608 - ours
        (part,),
    ).fetchall()
    return [word for (word,) in rows] if len(rows) <= _MOST_WORDS else None


def _any_of(words: Sequence[bytes]) -> str | None:
    """A condition for frames with one of these, or None if it cannot be expressed."""
    if any(len(word) > _LONGEST_TOKEN for word in words):
        return None
    try:
        texts = [word.decode() for word in words]
    except UnicodeDecodeError:
        return None
    quoted = [f'"{text.removesuffix("*")}"{"*" * text.endswith("*")}' for text in texts]
    return f"({' OR '.join(quoted)})"
