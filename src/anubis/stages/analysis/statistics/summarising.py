"""Sum up a series of finite values.

The mean of a short series is correctly rounded (``math.fsum``); that of a long one is summed
pairwise by NumPy, whose error grows with the logarithm of the length only. Percentiles are
defined in ``domain.quantile``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import cast

from anubis.domain.metric import MetricKey, Summary
from anubis.domain.quantile import quantile

FEW = 1_000
"""Below this many values plain Python is done before NumPy is imported."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Statistics:
    """What a series looks like. ``std`` is of the sample (n - 1); zero for one value."""

    count: int
    mean: float
    median: float
    minimum: float
    maximum: float
    std: float
    p90: float
    p95: float
    p99: float
    first: float
    last: float


def describe(values: Sequence[float]) -> Statistics:
    """The statistics of a series in order of arrival. Raises ValueError if it is empty."""
    if not len(values):
        raise ValueError("an empty series has no statistics")
    ordered, mean, std = _plainly(values) if len(values) < FEW else _with_numpy(values)
    return Statistics(
        count=len(values),
        mean=mean,
        median=quantile(ordered, 0.5),
        minimum=float(ordered[0]),
        maximum=float(ordered[-1]),
        std=std,
        p90=quantile(ordered, 0.9),
        p95=quantile(ordered, 0.95),
        p99=quantile(ordered, 0.99),
        first=float(values[0]),
        last=float(values[-1]),
    )


def summarise(key: MetricKey, units: str, values: Sequence[float]) -> Summary:
    """The summary of one series of a run. Raises ValueError if it is empty."""
    statistics = describe(values)
    fields = {
        field.name: getattr(statistics, field.name) for field in dataclasses.fields(statistics)
    }
    return Summary(key=key, units=units, **fields)


def _plainly(values: Sequence[float]) -> tuple[Sequence[float], float, float]:
    """The values in order, their mean and their spread."""
    size = len(values)
    mean = _total(values) / size
    squares = _total([(value - mean) * (value - mean) for value in values])
    return sorted(values), mean, math.sqrt(squares / (size - 1)) if size > 1 else 0.0


def _total(values: Sequence[float]) -> float:
    """Exact where it can be; infinite, instead of an error, where the sum leaves the range."""
    try:
        return math.fsum(values)
    except OverflowError:
        return sum(values)


def _with_numpy(values: Sequence[float]) -> tuple[Sequence[float], float, float]:
    """The same, for many values."""
    import numpy as np  # here: it takes longer to import than a short series to sum up

    array = np.array(values, dtype=np.float64)
    mean, std = float(array.mean()), float(array.std(ddof=1))
    array.sort()
    return cast("Sequence[float]", array), mean, std
