"""Metrics: one value at one instant, all of them in one run, and their statistics."""

from __future__ import annotations

import dataclasses
import enum


class MetricSource(enum.StrEnum):
    """How a metric reached us."""

    PATTERN = "pattern"  #: matched in the output by ``output.metrics``
    EMITTED = "emitted"  #: given to ``emit()``
    RESOURCE = "resource"  #: read from the operating system by the engine


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class MetricDefinition:
    """A metric to be found in the output: an entry of ``output.metrics``."""

    name: str
    units: str
    pattern: str  #: RE2; no group: the whole match is the value, one group: the group is
    unit: str | None = None  #: the unit whose output is searched; None: all units


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class MetricKey:
    """What a series belongs to, within one run."""

    unit: str
    name: str
    source: MetricSource


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """The statistics of one series. ``std`` is of the sample (n - 1); zero for one value."""

    key: MetricKey
    units: str  #: as declared, empty if not
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
