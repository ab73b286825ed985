"""A series as one line of blocks: ``▁▂▄▆█``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], cells: int = 24) -> str:
    """Draw the values in at most so many cells; each cell is the mean of its share.

    Values that are not finite are left out. A constant series is a line in the middle.
    """
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    means = _shares(finite, cells)
    low, high = min(means), max(means)
    # Halves, because the difference of two finite numbers may not be finite.
    span = high / 2 - low / 2
    if span <= 0:
        return _BLOCKS[3] * len(means)
    return "".join(_BLOCKS[min(7, int((mean / 2 - low / 2) / span * 8))] for mean in means)


def _shares(values: Sequence[float], cells: int) -> list[float]:
    if len(values) <= cells:
        return list(values)
    edges = [index * len(values) // cells for index in range(cells + 1)]
    return [
        sum(value / (end - start) for value in values[start:end])
        for start, end in itertools.pairwise(edges)
    ]
