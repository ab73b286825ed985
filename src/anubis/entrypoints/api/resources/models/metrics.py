"""What was measured, and where."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from anubis.domain.metric import MetricSource
from anubis.entrypoints.api.resources.models.kinds import Answer, Count, Filters, Line


class Metric(Answer):
    """The statistics of one series. A value that is no finite number is null."""

    unit: str
    """The program that was measured."""
    name: str
    source: MetricSource
    units: str
    """As declared; empty if not."""
    count: Count
    mean: float | None
    median: float | None
    min: float | None
    max: float | None
    std: float | None
    """Of the sample (n - 1)."""
    p90: float | None
    p95: float | None
    p99: float | None
    first: float | None
    last: float | None


class RunMetrics(Answer):
    """What a run has measured so far."""

    run: str
    metrics: list[Metric]


class Series(Answer):
    """The samples of one metric, in order of arrival."""

    unit: str
    name: str
    source: MetricSource
    units: str
    count: Count
    """How many samples there are in all."""
    at: list[int]
    """Microseconds since 1970."""
    values: list[float | Literal["NaN", "Infinity", "-Infinity"]]


class RunSeries(Answer):
    """The samples of a run's metrics."""

    run: str
    series: list[Series]


class SeriesFilters(Filters):
    """Which series, and how much of them."""

    unit: Line | None = Field(None, examples=["benchmark"])
    """Only of this program."""
    name: Annotated[str, Field(max_length=1024)] | None = Field(None, examples=["loss"])
    """Only of this metric."""
    source: MetricSource | None = Field(None, examples=["pattern"])
    """Only metrics that reached us this way."""
    points: Annotated[int, Field(ge=2, le=10_000)] | None = Field(None, examples=[200])
    """At most so many samples of each: the first, the last, and of every stretch between them the
    smallest and the largest. Without it, all."""


class Environment(Answer):
    """The environment a run had."""

    machine: dict[str, Any]
    """What rarely changes: CPU, memory, kernel, GPUs, interpreter, packages."""
    moment: dict[str, Any]
    """What was true then: load, free memory, git commit."""
