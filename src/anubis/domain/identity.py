"""How runs are named: UUID version 7 (RFC 9562), so that ids sort by time of submission."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from anubis.domain.run import RunId

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
