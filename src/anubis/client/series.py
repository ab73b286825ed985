"""The samples of runs: the port SeriesReader, answered by a service."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from anubis.client import calling, parsing
from anubis.client.calling import Call, segment
from anubis.client.fields import Fields
from anubis.client.transport import Transport
from anubis.domain.metric import MetricKey
from anubis.domain.run import RunId
from anubis.ports.series_store import Column

FEWEST_POINTS = 2
"""What is asked for where only the names of series are wanted: the least that the service gives."""

_TAKES = timedelta(minutes=2)  # a series may have millions of samples


class SeriesClient:
    """Looks at samples, also while they are being written."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def keys(self, run_id: RunId) -> Sequence[MetricKey]:
        """Which series the run has, ordered by unit, source and name."""
        found = await self._series(run_id, calling.query(points=FEWEST_POINTS))
        return [parsing.metric_key(one) for one in found]

    async def read(self, run_id: RunId, key: MetricKey, *, points: int | None = None) -> Column:
        """All samples of one series, in order of arrival; empty if there is none.

        With ``points``, about so many of them, among which are the smallest and the largest.
        """
        asked = calling.query(unit=key.unit, name=key.name, source=key.source.value, points=points)
        for one in await self._series(run_id, asked):
            if parsing.metric_key(one) == key:
                return parsing.column(one)
        return [], []

    async def _series(self, run_id: RunId, asked: calling.Query) -> list[Fields]:
        call = Call(path=f"/runs/{segment(run_id)}/series", query=asked, takes=_TAKES)
        return Fields((await self._transport.send(call)).json(), "series").parts("series")
