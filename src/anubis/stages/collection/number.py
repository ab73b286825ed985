"""Which text is a number.

What Python's ``float`` reads, with three deliberate exceptions. ``nan`` and ``inf`` are not
numbers, because one of them would make every statistic of its series useless; and digit
groups (``1_000``; ``1,000`` is no float anyway) are not numbers, because whoever writes them
writes for people. All three are reported by the caller, not dropped in silence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def number(text: bytes | str) -> float | None:
    """The value of ``text``, or None if it is not a number for us."""
    try:
        value = float(text)
    except ValueError:
        return None
    separator = b"_" if isinstance(text, bytes) else "_"
    if not math.isfinite(value) or separator in text:  # type: ignore[operator] # same kind as text
        return None
    return value


def all_numbers(texts: Sequence[bytes]) -> list[float] | None:
    """The values of ``texts`` if every one is a number, else None. Several times faster."""
    try:
        values = list(map(float, texts))
    except ValueError:
        return None
    if not all(map(math.isfinite, values)) or b"_" in b"".join(texts):
        return None
    return values
