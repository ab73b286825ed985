"""What runs measured: statistics, and the samples behind them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Final, TypedDict

from fastapi import APIRouter, Query
from starlette.responses import Response

from anubis.bootstrap.service import Service
from anubis.domain.metric import MetricKey
from anubis.domain.run import RunId
from anubis.entrypoints.api.resources import documentation as docs
from anubis.entrypoints.api.resources import examples
from anubis.entrypoints.api.resources.answering import JSON, Json, encoded
from anubis.entrypoints.api.resources.models import metrics
from anubis.entrypoints.api.resources.parameters import Here, Meant
from anubis.entrypoints.api.resources.streaming import streamed
from anubis.ports.series_store import Column
from anubis.stages.presentation import downsampling, shapes

router = APIRouter(prefix=docs.PREFIX, tags=["metrics"])

INLINE_SAMPLES: Final = 2_000
"""Samples that are turned into text on the event loop; more take milliseconds, in a thread."""


class SeriesShape(TypedDict):
    """The samples of one metric."""

    unit: str
    name: str
    source: str
    units: str
    count: int
    at: list[int]
    values: list[float | str]


_SERIES: Final = SeriesShape(
    unit="benchmark",
    name="loss",
    source="pattern",
    units="nats",
    count=3,
    at=[1715947200000000, 1715947203000000, 1715947206000000],
    values=[0.75, 0.5, 0.25],
)


@router.get(
    "/runs/{ref}/metrics",
    operation_id="getRunMetrics",
    summary="Get what a run measured",
    responses={
        **docs.answer(
            metrics.RunMetrics,
            {"run": examples.RUN_ID, "metrics": [examples.METRIC]},
            "The statistics of each metric, so far.",
        ),
        **docs.problems(404, 409),
    },
)
async def get_metrics(here: Here, run_id: Meant) -> Response:
    """Ordered by unit, source and name. While the run goes on, of what was measured so far."""
    summaries = await here.application.store.summaries(run_id)
    return Json({"run": run_id, "metrics": [shapes.metric_shape(one) for one in summaries]})


@router.get(
    "/runs/{ref}/series",
    operation_id="getRunSeries",
    summary="Get the samples of a run",
    responses={
        **docs.answer(
            metrics.RunSeries, {"run": examples.RUN_ID, "series": [_SERIES]}, "The samples."
        ),
        **docs.problems(404, 409),
    },
)
async def get_series(
    here: Here, run_id: Meant, filters: Annotated[metrics.SeriesFilters, Query()]
) -> Response:
    """All samples, or as many as fit a drawing: with `points`, peaks and dips stay."""
    summaries = await here.application.store.summaries(run_id)
    units = {summary.key: summary.units for summary in summaries}
    keys = [key for key in await here.application.series.keys(run_id) if _is_wanted(key, filters)]
    return await streamed(_document(here, run_id, _Wanted(keys, units, filters.points)), JSON)


class _Wanted:
    """Which series, with the units of their values, and with how many points."""

    def __init__(
        self, keys: Sequence[MetricKey], units: Mapping[MetricKey, str], points: int | None
    ) -> None:
        self.keys = keys
        self.units = units
        self.points = points


def _is_wanted(key: MetricKey, filters: metrics.SeriesFilters) -> bool:
    return (
        filters.unit in (None, key.unit)
        and filters.name in (None, key.name)
        and filters.source in (None, key.source)
    )


async def _document(here: Service, run_id: RunId, wanted: _Wanted) -> AsyncIterator[bytes]:
    """The answer, series by series: never more than one of them is in memory."""
    yield b'{"run":%b,"series":[' % encoded(run_id)
    for place, key in enumerate(wanted.keys):
        column = await here.application.series.read(run_id, key)
        yield b"," if place else b""
        yield await _text(key, wanted.units.get(key, ""), column, wanted.points)
    yield b"]}"


async def _text(key: MetricKey, units: str, column: Column, points: int | None) -> bytes:
    if len(column[1]) <= INLINE_SAMPLES:
        return encoded(_shape(key, units, column, points))
    return await asyncio.to_thread(lambda: encoded(_shape(key, units, column, points)))


def _shape(key: MetricKey, units: str, column: Column, points: int | None) -> SeriesShape:
    count = len(column[1])
    at, values = column if points is None else downsampling.downsample(column, points)
    return SeriesShape(
        unit=key.unit,
        name=key.name,
        source=key.source.value,
        units=units,
        count=count,
        at=[int(one) for one in at],
        values=[_value(one) for one in values],
    )


def _value(value: float) -> float | str:
    """A number that JSON can hold, or the name of one that it cannot."""
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
