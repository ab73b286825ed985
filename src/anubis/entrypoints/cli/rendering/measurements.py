"""Metrics as a table: the user's own first, what the machine used dimmed below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from anubis.domain.metric import MetricKey, MetricSource, Summary
from anubis.entrypoints.cli.rendering import text
from anubis.entrypoints.cli.rendering.columns import Cell, Column, table

_STATISTICS = ("mean", "median", "min", "max", "last")


def ordered(summaries: Sequence[Summary]) -> list[Summary]:
    """The user's metrics first, in the order given; resources after them."""
    return sorted(summaries, key=lambda one: one.key.source is MetricSource.RESOURCE)


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
    summaries: Sequence[Summary], trends: Mapping[MetricKey, str] | None = None, indent: str = "  "
) -> str:
    """Count, mean, median, min, max and last of every metric, and its trend where one is given."""
    columns = [Column(title="metric"), Column(title="count", right=True)]
    columns += [Column(title=title, right=True) for title in _STATISTICS]
    if trends is not None:
        columns.append(Column(title="trend"))
    with_unit = several_units(summaries)
    rows = [_row(summary, trends, with_unit=with_unit) for summary in ordered(summaries)]
    return table(columns, rows, indent)


def _row(
    summary: Summary, trends: Mapping[MetricKey, str] | None, *, with_unit: bool
) -> list[Cell]:
    is_resource = summary.key.source is MetricSource.RESOURCE
    numbers = (summary.mean, summary.median, summary.minimum, summary.maximum, summary.last)
    texts = [label(summary, with_unit=with_unit), f"{summary.count:,}"]
    texts += [value(summary, number) for number in numbers]
    cells = [Cell(text=one, dim=is_resource) for one in texts]
    if trends is not None:
        colour = "" if is_resource else "cyan"
        cells.append(Cell(text=trends.get(summary.key, ""), colour=colour, dim=is_resource))
    return cells


def _needs_units(summary: Summary) -> bool:
    """Sizes carry their units along, and names like ``cpu_percent`` say them already."""
    named = summary.key.name.lower().endswith(f"_{summary.units.lower()}")
    return bool(summary.units) and not named and not _is_size(summary)


def _is_size(summary: Summary) -> bool:
    return summary.units in ("B", "bytes")
