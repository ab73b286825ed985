"""The statistics of a series while it grows.

Count, mean, spread, extremes, first and last are exact at any moment and take constant memory
(Welford's method, in the batch form of Chan, Golub and LeVeque 1983). Percentiles come from the
values that are kept: all of them up to ``MOST_KEPT``, later every second, fourth, … value.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from anubis.domain.metric import MetricKey, Summary
from anubis.domain.quantile import quantile

MOST_KEPT = 1024
"""Values kept per series for live percentiles: 8 KiB, sorted in a tenth of a millisecond."""


class RunningSeries:
    """What is known about one series so far."""

    def __init__(self, key: MetricKey, units: str) -> None:
        self.key = key
        self.units = units
        self.count = 0
        self._mean = 0.0
        self._squares = 0.0  # sum of squared distances from the mean
        self._minimum = math.inf
        self._maximum = -math.inf
        self._first = self._last = 0.0
        self._kept = array("d")
        self._stride = 1  # every so manieth value is kept
        self._latest: Summary | None = None  # as long as nothing was added since

    @property
    def keeps_everything(self) -> bool:
        """Whether the percentiles of ``summary`` are exact."""
        return self._stride == 1

    def add(self, values: Sequence[float]) -> None:
        """Take the next values, all finite."""
        if not values:
            return
        self._latest = None
        if self.count == 0:
            self._first = values[0]
        self._keep(values)
        self._merge(values)
        least, most = min(values), max(values)
        self._minimum = min(self._minimum, least)
        self._maximum = max(self._maximum, most)
        self._last = values[-1]

    def summary(self) -> Summary:
        """The statistics now. Cheap to ask again while nothing was added."""
        if self._latest is None:
            self._latest = self.summary_of(sorted(self._kept))
        return self._latest

    def summary_of(self, ordered: Sequence[float]) -> Summary:
        """The statistics now, with the percentiles of ``ordered``: all values, sorted."""
        median, p90, p95, p99 = (quantile(ordered, part) for part in (0.5, 0.9, 0.95, 0.99))
        return Summary(
            key=self.key,
            units=self.units,
            count=self.count,
            mean=self._mean,
            median=median,
            minimum=self._minimum,
            maximum=self._maximum,
            std=math.sqrt(self._squares / (self.count - 1)) if self.count > 1 else 0.0,
            p90=p90,
            p95=p95,
            p99=p99,
            first=self._first,
            last=self._last,
        )

    def _merge(self, values: Sequence[float]) -> None:
        size = len(values)
        mean = _total(values) / size
        squares = _total([(value - mean) * (value - mean) for value in values])
        distance = mean - self._mean
        count = self.count + size
        self._mean += distance * size / count
        self._squares += squares + distance * distance * self.count * size / count
        self.count = count

    def _keep(self, values: Sequence[float]) -> None:
        offset = -self.count % self._stride  # the next value whose number the stride divides
        self._kept.extend(values[offset :: self._stride])
        while len(self._kept) > MOST_KEPT:
            self._kept = self._kept[::2]
            self._stride *= 2


def _total(values: Sequence[float]) -> float:
    """Exact where it can be; infinite, instead of an error, where the sum leaves the range."""
    try:
        return math.fsum(values)
    except OverflowError:
        return sum(values)
