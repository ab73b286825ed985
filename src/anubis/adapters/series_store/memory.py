"""Series in memory, for tests and for trying things out."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from anubis.domain.metric import MetricKey
from anubis.domain.run import RunId
from anubis.ports.series_store import Column

_Columns: TypeAlias = "dict[MetricKey, tuple[array[int], array[float]]]"


class MemorySeriesStore:
    """Keeps all samples of all runs. Lost with the process."""

    def __init__(self) -> None:
        self._runs: dict[RunId, _Columns] = {}

    async def writer(self, run_id: RunId) -> _MemorySeriesWriter:
        """Start the series of a run anew."""
        columns = self._runs[run_id] = {}
        return _MemorySeriesWriter(columns)

    async def keys(self, run_id: RunId) -> Sequence[MetricKey]:
        """Which series the run has, ordered by unit, source and name."""
        return sorted(self._runs.get(run_id, {}), key=lambda key: (key.unit, key.source, key.name))

    async def read(self, run_id: RunId, key: MetricKey) -> Column:
        """All samples of one series."""
        instants, values = self._runs.get(run_id, {}).get(key, (array("q"), array("d")))
        return instants[:], values[:]

    async def delete(self, run_id: RunId) -> None:
        """Forget all series of the run."""
        self._runs.pop(run_id, None)


class _MemorySeriesWriter:
    def __init__(self, columns: _Columns) -> None:
        self._columns = columns

    async def append(self, columns: Mapping[MetricKey, Column]) -> None:
        for key, (instants, values) in columns.items():
            kept = self._columns.setdefault(key, (array("q"), array("d")))
            kept[0].extend(instants)
            kept[1].extend(values)

    async def values(self, key: MetricKey) -> Sequence[float]:
        return self._columns.get(key, (array("q"), array("d")))[1][:]

    async def seal(self) -> None:
        pass  # memory is as durable and compact as it gets
