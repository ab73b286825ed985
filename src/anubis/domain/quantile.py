"""What a percentile means here: linear interpolation between the two nearest values.

This is the definition NumPy calls ``linear`` (Hyndman and Fan 1996, type 7) and uses by
default, so anybody can check our figures with one call. It is written once, for live views
and for final summaries alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def quantile(ordered: Sequence[float], fraction: float) -> float:
    """The value below which ``fraction`` of ``ordered`` lies. ``ordered`` is sorted, not empty."""
    position = fraction * (len(ordered) - 1)
    lower = math.floor(position)
    below = float(ordered[lower])
    if lower + 1 >= len(ordered):
        return below
    above = float(ordered[lower + 1])
    if below == above:  # also keeps two infinities from making a NaN
        return below
    return below + (above - below) * (position - lower)
