"""How runs and schedules are named: UUID version 7 (RFC 9562), so that ids sort by their time."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime, timedelta

from anubis.domain.run import RunId

ABOVE_ALL_IDS = "g"
"""Sorts after every id, and after every continuation of a prefix: ids are hex digits and dashes."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HEX = re.compile(r"[0-9a-f]{1,32}")
_DASHES_AFTER = (8, 12, 16, 20)


def earliest(at: datetime) -> RunId:
    """An id below all that are made at ``at`` or later, and above all that were made before.

    Turns a filter by time into a range of ids. No id was made before 1970.
    """
    return run_id(max(at, _EPOCH), bytes(8))


def run_id(now: datetime, randomness: bytes) -> RunId:
    """Make an id from the time and eight random bytes.

    The twelve bits after the milliseconds hold their fraction (method 3 of the RFC), so that ids
    made by one process within a millisecond sort as well.
    """
    microseconds = (now - _EPOCH) // timedelta(microseconds=1)
    milliseconds, rest = divmod(microseconds, 1000)
    fraction = rest * 4096 // 1000
    chance = int.from_bytes(randomness[:8], "big") & (1 << 62) - 1
    value = (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | fraction << 64 | 0x2 << 62 | chance
    text = f"{value:032x}"
    return RunId(f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")


def prefix(reference: str) -> str | None:
    """The start of an id in canonical spelling: lower case, dashes where ids have them.

    People paste ids in capitals, or without dashes from places that strip them. None if no id can
    start like this.
    """
    digits = reference.strip().lower().replace("-", "")
    if not _HEX.fullmatch(digits):
        return None
    cuts = (0, *_DASHES_AFTER, 32)
    parts = [digits[start:end] for start, end in itertools.pairwise(cuts)]
    return "-".join(part for part in parts if part)
