"""Metrics as a table: the user's own first, what the machine used dimmed below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from anubis.domain.metric import MetricKey, MetricSource, Summary
from anubis.entrypoints.cli.rendering import text
from anubis.entrypoints.cli.rendering.columns import Cell, Column, needed, table
from anubis.entrypoints.cli.rendering.sparkline import sparkline

_COLUMNS = (
    Column(title="metric", shortens_to=20),
    Column(title="count", right=True, leaves=2),
    Column(title="mean", right=True, leaves=5),
    Column(title="median", right=True, leaves=1),
    Column(title="min", right=True, leaves=3),
    Column(title="max", right=True, leaves=4),
    Column(title="last", right=True),
)
_TREND = Column(title="trend")
_TREND_CELLS = 24
_SHORTEST_TREND = 8
"""Cells. With fewer, a course over time has no shape any more."""

_SPELT_OUT = {"s": "seconds"}
"""How names like ``cpu_seconds`` say the units that are written otherwise."""


def ordered(summaries: Sequence[Summary]) -> list[Summary]:
    """The user's metrics first, resources after them; each by name, as people count."""
    return sorted(summaries, key=_place)


def _place(summary: Summary) -> tuple[object, ...]:
    key = summary.key
    is_resource = key.source is MetricSource.RESOURCE
    return is_resource, text.naturally(key.unit), text.naturally(key.name), key.source


def telling(summaries: Sequence[Summary]) -> list[Summary]:
    """All but resources that were never used: a row of zeros only hides the others."""
    return [
        one for one in summaries if one.key.source is not MetricSource.RESOURCE or one.maximum != 0
    ]


def label(summary: Summary, *, with_unit: bool) -> str:
    """``throughput (images/s)``; with the unit of the plan before it where there are several."""
    unit = f"{summary.key.unit}/" if with_unit else ""
    units = f" ({summary.units})" if _needs_units(summary) else ""
    return text.printable(f"{unit}{summary.key.name}{units}")


def value(summary: Summary, number: float) -> str:
    """A value in the summary's units; only sizes carry them along."""
    if _is_size(summary):
        return text.size(number) if math.isfinite(number) else str(number)
    return text.number(number)


def several_units(summaries: Sequence[Summary]) -> bool:
    """Whether the names need the unit they belong to."""
    return len({summary.key.unit for summary in summaries}) > 1


def metrics_table(
    summaries: Sequence[Summary],
    trends: Mapping[MetricKey, Sequence[float]] | None = None,
    indent: str = "  ",
    width: int | None = None,
) -> str:
    """Count, mean, median, min, max and last of every metric, and its course where one is given.

    Where the terminal is narrow, the course is drawn smaller or left out, then other columns.
    """
    columns, with_unit = list(_COLUMNS), several_units(summaries)
    rows = [_row(summary, with_unit=with_unit) for summary in ordered(summaries)]
    cells = _TREND_CELLS
    if width is not None:
        cells = min(cells, width - len(indent) - needed(columns, rows) - 2)
    if trends is not None and cells >= _SHORTEST_TREND:
        columns.append(_TREND)
        for row, summary in zip(rows, ordered(summaries), strict=True):
            row.append(_trend(summary, trends.get(summary.key, ()), cells))
    return table(columns, rows, indent, width)


def _row(summary: Summary, *, with_unit: bool) -> list[Cell]:
    is_resource = summary.key.source is MetricSource.RESOURCE
    numbers = (summary.mean, summary.median, summary.minimum, summary.maximum, summary.last)
    texts = [label(summary, with_unit=with_unit), f"{summary.count:,}"]
    texts += [value(summary, number) for number in numbers]
    return [Cell(text=one, dim=is_resource) for one in texts]


def _trend(summary: Summary, values: Sequence[float], cells: int) -> Cell:
    """Totals that are known at the end, and metrics seen once, have no course to draw."""
    is_resource = summary.key.source is MetricSource.RESOURCE
    drawn = sparkline(values, cells) if len(values) > 1 else ""
    return Cell(text=drawn, colour="" if is_resource else "cyan", dim=is_resource)


def _needs_units(summary: Summary) -> bool:
    """Sizes carry their units along, and names like ``cpu_percent`` say them already."""
    units = summary.units.lower()
    named = summary.key.name.lower().endswith((f"_{units}", f"_{_SPELT_OUT.get(units, units)}"))
    return bool(units) and not named and not _is_size(summary)


def _is_size(summary: Summary) -> bool:
    return summary.units in ("B", "bytes")
