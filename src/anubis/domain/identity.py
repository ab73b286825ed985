"""How runs are named: UUID version 7 (RFC 9562), so that ids sort by time of submission."""

from __future__ import annotations

from datetime import datetime

from anubis.domain.run import RunId


def run_id(now: datetime, randomness: bytes) -> RunId:
    """Make an id from the time and ten random bytes."""
    milliseconds = int(now.timestamp() * 1000)
    value = (milliseconds & (1 << 48) - 1) << 80 | int.from_bytes(randomness[:10], "big")
    value = value & ~(0xF << 76) | 0x7 << 76  # version 7
    value = value & ~(0x3 << 62) | 0x2 << 62  # RFC variant
    text = f"{value:032x}"
    return RunId(f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")
