"""Show a long series with few points, so that no peak and no dip is lost.

The samples between the first and the last are cut into stretches of equal length, and of each
stretch its smallest and its largest value stay, where they were: what is drawn from them looks
like what is drawn from all.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from anubis.ports.series_store import Column

FEWEST = 2
"""The first and the last; from four on, the smallest and the largest of all stay as well."""


def downsample(column: Column, points: int) -> Column:
    """At most ``points`` samples of a column, in their order; all of them if they are so few.

    Values that are no numbers stay only where a stretch has nothing else.
    """
    if points < FEWEST:
        raise ValueError(f"a series is shown with {FEWEST} points or more, not {points}")
    instants, values = column
    if len(values) <= points:
        return column
    kept = _kept(values, points)
    return [instants[index] for index in kept], [values[index] for index in kept]


def _kept(values: Sequence[float], points: int) -> list[int]:
    """The places of the samples that stay."""
    # Here and not above: numpy takes longer to import than most commands take in all, and this
    # module is in the room of those that every command reads.
    import numpy as np

    numbers = np.asarray(values, dtype=float)
    is_nan = np.isnan(numbers)
    lows, highs = np.where(is_nan, np.inf, numbers), np.where(is_nan, -np.inf, numbers)
    last = len(numbers) - 1
    stretches = (points - FEWEST) // 2
    cuts = np.linspace(1, last, stretches + 1).astype(int) if stretches else np.empty(0, int)
    kept = {0, last}
    for start, end in itertools.pairwise(cuts):
        if start < end:
            kept.add(int(start + np.argmin(lows[start:end])))
            kept.add(int(start + np.argmax(highs[start:end])))
    return sorted(kept)
