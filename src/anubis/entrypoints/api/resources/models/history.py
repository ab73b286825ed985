"""Many runs together: benchmarks, their trends, and families."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from anubis.domain.run import RunState
from anubis.entrypoints.api.resources.models.kinds import Answer, Filters, Line
from anubis.entrypoints.api.resources.models.metrics import Metric
from anubis.entrypoints.api.resources.models.runs import LARGEST_PAGE, Cursor, Run


class Group(Answer):
    """Runs that share a benchmark or a family."""

    name: str
    runs: int
    """How many, counted up to 10,000."""
    newest: str
    """The id of the newest one."""


class BenchmarkPage(Answer):
    """Some benchmarks, by name."""

    benchmarks: list[Group]
    next: str | None
    """``after`` of the next page; null: this is the last one."""


class FamilyPage(Answer):
    """Some families, by name."""

    families: list[Group]
    next: str | None
    """``after`` of the next page; null: this is the last one."""


class Family(Answer):
    """The runs of one family."""

    family: str
    runs: list[Run]
    """Newest first."""
    counts: dict[RunState, int]
    """How many of its newest 1,000 runs are in each state; states without runs are left out."""
    next: str | None
    """The ``cursor`` of the next page; null: this is the last one."""


class TrendPoint(Answer):
    """What one run measured."""

    run: str
    state: RunState
    submitted_at: datetime
    metric: Metric


class Trend(Answer):
    """What the successful runs of a benchmark measured, newest first."""

    benchmark: str
    metric: str
    points: list[TrendPoint]
    next: str | None
    """The ``cursor`` of the next page; null: this is the last one."""


class GroupFilters(Filters):
    """Which benchmarks or families."""

    after: Annotated[str, Field(max_length=1024)] = Field("", examples=["resnet"])
    """Only names that sort above this one: ``next`` of the page before."""
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = Field(50, examples=[20])
    """How many at most."""


class FamilyFilters(Filters):
    """Which runs of a family."""

    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = Field(50, examples=[20])
    """How many at most."""
    cursor: Cursor | None = Field(None, examples=["018f8583-4a00-7000-9fec-f0f8a0d2f3a7"])
    """``next`` of the page before."""


class TrendFilters(Filters):
    """Which points."""

    metric: Annotated[str, Field(min_length=1, max_length=1024)] = Field(examples=["loss"])
    """The metric's name."""
    unit: Line | None = Field(None, examples=["benchmark"])
    """Only of this program."""
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = Field(50, examples=[20])
    """How many runs are looked at; those that did not measure it give no point."""
    cursor: Cursor | None = Field(None, examples=["018f8583-4a00-7000-9fec-f0f8a0d2f3a7"])
    """``next`` of the page before."""
