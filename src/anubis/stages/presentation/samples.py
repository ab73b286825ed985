"""Every sample as CSV, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from anubis.domain.metric import MetricKey
from anubis.ports.series_store import Column
from anubis.stages.presentation import shapes

HEADER = ("at", "unit", "source", "metric", "units", "value")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BATCH = 4096


def header() -> str:
    """The first line."""
    return _text([HEADER])


def pages(key: MetricKey, units: str, column: Column) -> Iterator[str]:
    """The samples of one series, a few thousand lines at a time."""
    instants, values = column
    for start in range(0, len(instants), _BATCH):
        some = zip(instants[start : start + _BATCH], values[start : start + _BATCH], strict=True)
        yield _text([_row(key, units, int(at), float(value)) for at, value in some])


def _row(key: MetricKey, units: str, microseconds: int, value: float) -> tuple[str, ...]:
    # Whole numbers of microseconds are added, because a float of seconds would round them.
    at = shapes.iso(_EPOCH + timedelta(microseconds=microseconds))
    return (at, key.unit, key.source.value, key.name, units, repr(value))


def _text(rows: list[tuple[str, ...]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()
