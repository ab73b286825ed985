"""The full-text index of a sealed log: which frames can hold a text.

A contentless FTS5 table with a document per frame and without positions: the smallest index
that SQLite can build, at about the speed of the compression. It only names candidates; the
reader looks into the frames. Tokens are runs of ASCII letters and digits and of bytes above
127, letter case ignored (the ``ascii`` tokenizer).

The text that is searched for may begin and end in the middle of a token of the log. So of its
own tokens only those with a border on the left are of use; one that touches the end is used as
a prefix. Text without such a token, like a single word, cannot be looked up.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from anubis.adapters.log_store.local import files, frame, reading

_TOKEN = re.compile(rb"[0-9A-Za-z\x80-\xff]+")
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
            CREATE VIRTUAL TABLE frames
            USING fts5(text, content='', columnsize=0, detail=none, tokenize='ascii');
            """
        )
        with database:
            database.execute("INSERT INTO log (name) VALUES (?)", (log.name,))
            database.executemany("INSERT INTO frames (rowid, text) VALUES (?, ?)", _documents(log))
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


def candidates(path: Path, log_name: bytes, wanted: bytes) -> list[int] | None:
    """Positions of the frames that can hold ``wanted``, in order.

    None means that all can: there is no index for this log, or it cannot tell.
    """
    expression = _expression(wanted)
    if expression is None or not path.exists():
        return None
    try:
        address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
            if database.execute("SELECT name FROM log").fetchone() != (log_name,):
                return None
            rows = database.execute(
                "SELECT rowid FROM frames WHERE frames MATCH ? ORDER BY rowid", (expression,)
            )
            return [position for (position,) in rows]
    except sqlite3.Error:  # deleted or damaged meanwhile: the log itself is still there
        return None


def _expression(wanted: bytes) -> str | None:
    """The query for all tokens of ``wanted`` that are of use, or None if none is."""
    terms = []
    for token in _TOKEN.finditer(wanted):
        if token.start() == 0 or len(token.group()) > _LONGEST_TOKEN:
            continue
        try:
            text = token.group().decode()
        except UnicodeDecodeError:
            continue
        terms.append(f'"{text}"' + ("*" if token.end() == len(wanted) else ""))
    return " AND ".join(terms) or None
