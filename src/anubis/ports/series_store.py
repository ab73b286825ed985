"""Keep every sample of every metric, compactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from anubis.domain.metric import MetricKey
from anubis.domain.run import RunId

Column = tuple[Sequence[int], Sequence[float]]
"""Instants in microseconds since the epoch, and as many values."""


class SeriesWriter(Protocol):
    """Takes the samples of one run, once, in order of arrival."""

    async def append(self, columns: Mapping[MetricKey, Column]) -> None:
        """Add samples; readers in any process see them when this returns."""
        ...

    async def values(self, key: MetricKey) -> Sequence[float]:
        """All values appended to one series, in order of arrival. Allowed after ``seal`` too."""
        ...

    async def seal(self) -> None:
        """Make everything durable and compact. Nothing is appended after this."""
        ...


class SeriesReader(Protocol):
    """Look at the samples of runs, also while they are being written."""

    async def keys(self, run_id: RunId) -> Sequence[MetricKey]:
        """Which series the run has, ordered by unit, source and name."""
        ...

    async def read(self, run_id: RunId, key: MetricKey) -> Column:
        """All samples of one series, in order of arrival; empty if there is none."""
        ...


class SeriesStore(SeriesReader, Protocol):
    """All series of a run belong together. Reading while they are written is allowed."""

    async def writer(self, run_id: RunId) -> SeriesWriter:
        """Start the series of a run anew: what an interrupted collection left is replaced."""
        ...

    async def delete(self, run_id: RunId) -> None:
        """Forget all series of the run. Safe to repeat."""
        ...
