"""How people write and read amounts of bytes: ``500MB``, ``10GiB``, ``4096``."""

from __future__ import annotations

import re
from typing import Final

UNITS: Final = "units are B, KB, MB, GB, TB, KiB, MiB, GiB and TiB"

_BYTES: Final = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_SIZE: Final = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([KMGT]?I?B|)", re.IGNORECASE)


def read(text: str) -> int | None:
    """The bytes a text stands for; None if it is no size."""
    found = _SIZE.fullmatch(text.strip())
    return int(float(found[1]) * _BYTES[found[2].upper()]) if found else None


_SPOKEN: Final = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def spoken(number: int) -> str:
    """``8 GiB``; three digits, for people."""
    for unit, length in _SPOKEN:
        if number >= length:
            amount = number / length
            return f"{amount:.3g} {unit}" if amount < 999.5 else f"{amount:.0f} {unit}"
    return f"{number} byte{'' if number == 1 else 's'}"
