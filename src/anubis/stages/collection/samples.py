"""The samples of a run on their way to the store, and the statistics of each series."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import cast

from anubis.domain.metric import MetricKey, Summary
from anubis.ports.series_store import Column
from anubis.stages.collection.findings import LONGEST_NAME, MOST_METRICS
from anubis.stages.collection.running import RunningSeries

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Samples:
    """All series of a run. Samples may be added in a thread while the live view reads."""

    def __init__(self) -> None:
        self.count = 0
        self.pending = 0  #: samples that ``take`` would give
        self._columns: dict[MetricKey, tuple[array[int], array[float]]] = {}
        self._series: dict[MetricKey, RunningSeries] = {}
        self._lock = threading.Lock()

    def add(self, key: MetricKey, units: str, at: datetime, values: Sequence[float]) -> bool:
        """Take values of one series, at least one; False if there is no room for the metric."""
        with self._lock:
            series = self._series.get(key)
            if series is None:
                if len(self._series) >= MOST_METRICS or len(key.name) > LONGEST_NAME:
                    return False
                series = self._series[key] = RunningSeries(key, units)
            series.add(values)
            instants, column = self._columns.setdefault(key, (array("q"), array("d")))
            instants.extend(array("q", [(at - _EPOCH) // _MICROSECOND]) * len(values))
            column.extend(values)
            self.count += len(values)
            self.pending += len(values)
        return True

    def note(self, key: MetricKey, units: str, value: float) -> None:
        """Take a number that is true of the whole run: it has a summary but no course over time."""
        with self._lock:
            series = self._series.setdefault(key, RunningSeries(key, units))
            series.add([value])
            self.count += 1

    def take(self) -> Mapping[MetricKey, Column]:
        """What is not yet stored; it is the caller's from now on."""
        with self._lock:
            columns, self._columns, self.pending = self._columns, {}, 0
        return columns

    def names(self) -> set[str]:
        """The names of all metrics that have a sample."""
        return {key.name for key in self._series}

    def ordered(self) -> list[RunningSeries]:
        """All series by unit, source and name."""
        return sorted(
            self._series.values(),
            key=lambda series: (series.key.unit, series.key.source, series.key.name),
        )

    def summaries(self) -> list[Summary]:
        """The statistics so far, by unit, source and name."""
        with self._lock:
            return [series.summary() for series in self.ordered()]


def exact_summary(series: RunningSeries, values: Sequence[float]) -> Summary:
    """The statistics of a long series, with percentiles from all its values."""
    import numpy as np  # here: a tenth of a second that most runs need not spend

    ordered = np.array(values, dtype=np.float64)
    ordered.sort()
    return series.summary_of(cast("Sequence[float]", ordered))  # NumPy does not say it is one
