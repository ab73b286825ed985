"""How values that every store has are spelled in rows.

Instants are integers (microseconds UTC): exact, sortable and four times cheaper to read than text.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

Row = tuple[Any, ...]
Value = str | int | float | bytes | None
Parameters = Mapping[str, Value]

LARGEST = 2**63 - 1
"""What an INTEGER can hold."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def storable(text: str) -> str:
    """The text, with what no encoding can hold (lone surrogates) written out as an escape.

    Such text comes from file names and from programs that emit broken JSON. It must not keep a
    run from ending.
    """
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def maybe_storable(text: str | None) -> str | None:
    """The same for a text that may be missing."""
    return None if text is None else storable(text)


def integer(number: int) -> int:
    """A number that a client made up, brought into the range of an INTEGER."""
    return max(-LARGEST, min(number, LARGEST))


def limit(number: int) -> int:
    """How many rows at most; SQLite takes a negative number to mean all."""
    return max(0, min(number, LARGEST))


def micros(at: datetime) -> int:
    """An instant as stored."""
    since = at - _EPOCH
    return (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds


def instant(stored: int) -> datetime:
    """A stored instant."""
    return _EPOCH + timedelta(microseconds=stored)


def maybe_micros(at: datetime | None) -> int | None:
    """An instant that may be missing, as stored."""
    return None if at is None else micros(at)


def maybe_instant(stored: int | None) -> datetime | None:
    """A stored instant that may be missing."""
    return None if stored is None else instant(stored)
