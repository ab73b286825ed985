"""A run as lines of text, one per change: for pipes, files and plain terminals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from anubis.domain.event import Event
from anubis.domain.metric import MetricSource, Summary
from anubis.entrypoints.cli.rendering import cards, measurements, text

PAUSE = timedelta(seconds=5)
"""Between two lines of metric values: enough for a log file to show that a run is alive."""


class Story:
    """Remembers what was told, so that only changes are."""

    def __init__(self) -> None:
        self._told_at: datetime | None = None
        self._told = ""
        self._why = ""

    def lines(
        self, events: Sequence[Event], summaries: Sequence[Summary], now: datetime
    ) -> list[str]:
        """What is new, oldest first."""
        return [cards.event_line(event) for event in events] + self._values(summaries, now)

    def waiting(self, why: str, now: datetime) -> list[str]:
        """Why the run waits, if that is something new."""
        if not why or why == self._why:
            return []
        self._why = why
        return [f"{now.astimezone():%H:%M:%S}  waiting    {text.printable(why)}"]

    def _values(self, summaries: Sequence[Summary], now: datetime) -> list[str]:
        values = newest_values(summaries)
        too_soon = self._told_at is not None and now - self._told_at < PAUSE
        if not values or values == self._told or too_soon:
            return []
        self._told, self._told_at = values, now
        return [f"{now.astimezone():%H:%M:%S}  metrics    {values}"]


def newest_values(summaries: Sequence[Summary]) -> str:
    """The newest value of each of the user's metrics: ``loss=0.23  accuracy=0.91``."""
    own = [
        one
        for one in measurements.ordered(summaries)
        if one.key.source is not MetricSource.RESOURCE
    ]
    with_unit = measurements.several_units(summaries)  # as in the table at the end
    return "  ".join(_value(summary, with_unit=with_unit) for summary in own)


def _value(summary: Summary, *, with_unit: bool) -> str:
    unit = f"{summary.key.unit}/" if with_unit else ""
    amount = text.amount(summary.last, summary.units)
    return text.printable(f"{unit}{summary.key.name}={amount}")
