"""Look at many runs together: trend lines, families, and the feed of all that happens."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from anubis.domain.event import Event
from anubis.domain.metric import Summary
from anubis.domain.run import RunId, RunState


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Runs that share a benchmark or a family."""

    name: str
    runs: int  #: how many, counted up to ``MOST_COUNTED``
    newest: RunId


MOST_COUNTED = 10_000
"""Counting further would make a page cost more than the page shows."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TrendPoint:
    """What one run of a benchmark measured for one metric."""

    run_id: RunId
    state: RunState
    submitted_at: datetime
    summary: Summary


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TrendQuery:
    """Which points, newest first."""

    benchmark: str
    metric: str
    unit: str | None = None  #: None: of every unit
    before: RunId | None = None  #: keyset cursor: only runs older than this one
    limit: int = 50  #: how many runs are looked at; each gives as many points as it has units


class History(Protocol):
    """Every method may raise StoreUnavailable; retrying is safe. Costs follow the page asked for,
    never the number of runs stored.
    """

    async def benchmarks(self, *, after: str = "", limit: int = 50) -> Sequence[Group]:
        """Benchmarks with runs, by name, those that sort above ``after``."""
        ...

    async def families(self, *, after: str = "", limit: int = 50) -> Sequence[Group]:
        """Families with runs, by name, those that sort above ``after``."""
        ...

    async def trend(self, query: TrendQuery) -> Sequence[TrendPoint]:
        """The points of runs of a benchmark that SUCCEEDED and measured the metric, newest first.

        Exactly ``query.limit`` successful runs are looked at, fewer only at the end of history;
        those without the metric give no point.
        """
        ...

    async def feed(self, *, after: int, limit: int = 1000) -> Sequence[Event]:
        """Events of all runs with a sequence above ``after``, in the order they were stored.

        An event that is not yet in the feed never appears below one that is: who goes on from the
        last sequence seen misses nothing and sees nothing twice. Events of purged runs are gone.
        """
        ...

    async def last_sequence(self) -> int:
        """The sequence of the newest event ever stored; 0 if there was none."""
        ...
