"""Users' metrics for Prometheus: names and labels made legal, and no two series the same.

The original system offered them as ``BAI_METRICS_<name>`` with the ids of action and client and the
labels of the descriptor; dashboards look for these names.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from anubis.domain.metric import MetricSource, Summary
from anubis.domain.run import Run

PREFIX = "BAI_METRICS_"

MOST_SERIES = 10_000
"""In one answer: about two megabytes. Prometheus itself suffers from more."""

LONGEST_VALUE = 200
"""Characters of a label's value."""

_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """A run with what it measured so far."""

    run: Run
    client_id: str
    summaries: Sequence[Summary]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """The newest value of one metric of one run."""

    name: str
    labels: Mapping[str, str]
    value: float


def series(measured: Iterable[Measured]) -> Iterator[Series]:
    """The users' own metrics of these runs, not too many."""
    left = MOST_SERIES
    for one in measured:
        for found in _series_of(one):
            if not left:
                return
            left -= 1
            yield found


def _series_of(measured: Measured) -> Iterator[Series]:
    labels = _labels(measured)
    seen: set[tuple[str, str, str]] = set()
    for summary in measured.summaries:
        key = summary.key
        if key.source is MetricSource.RESOURCE:
            continue
        name = PREFIX + _ILLEGAL.sub("_", key.name)
        own = {"unit": key.unit, "source": key.source.value}
        if (name, key.unit, key.source) in seen:  # two names became one: a.b and a-b
            own["metric"] = key.name[:LONGEST_VALUE]
        seen.add((name, key.unit, key.source))
        yield Series(name=name, labels={**labels, **own}, value=summary.last)


def _labels(measured: Measured) -> Mapping[str, str]:
    run = measured.run
    labels = {"action_id": str(run.id), "client_id": measured.client_id[:LONGEST_VALUE]}
    taken = {"unit", "source", "metric", *labels}
    for given, value in run.labels:
        name = legal_label(given)
        while name in taken:
            name += "_"
        taken.add(name)
        labels[name] = value[:LONGEST_VALUE]
    return labels


def legal_label(name: str) -> str:
    """The nearest name that Prometheus accepts. Two underscores in front are its own."""
    legal = _ILLEGAL.sub("_", name)
    return legal if legal[:1].isalpha() else f"label_{legal}"
