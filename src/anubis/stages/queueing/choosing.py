"""Choose which of the runs that wait start now.

One pass through the candidates in their order. A run that fits starts. The first that does not is
booked all the same, as if it had started: what it asks for stays free, and those behind it get only
what is left besides. It therefore starts no later than if they were not there: nobody is overtaken
for ever, and engines do not stand idle for the sake of one. Only a run that its own benchmark's
limit holds back books nothing: the others have no part in that.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections import Counter
from collections.abc import Mapping, Sequence

from anubis.domain.demand import Capacity, place
from anubis.domain.run import Run, RunId
from anubis.stages.queueing import fitting, room
from anubis.stages.queueing.shares import EXPECTED


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """What a choice depends on, besides the candidates."""

    capacities: Mapping[str, Capacity]  #: by engine
    under_way: Sequence[Run]  #: whoever carries them, on all engines
    usage: Mapping[str, float]  #: seconds that people used lately; none: zero


def choose(candidates: Sequence[Run], situation: Situation) -> list[Run]:
    """The runs to start now, machine by machine in the order in which they leave the queue.

    Runs of an engine that is not there are all chosen: they end at once, with a reason.
    """
    by_place: dict[str, list[Run]] = {}
    for run in candidates:
        by_place.setdefault(place(run.engine, situation.capacities), []).append(run)
    chosen: list[Run] = []
    for waiting in by_place.values():
        capacity = situation.capacities.get(waiting[0].engine)
        if capacity is None:
            chosen += waiting
        else:
            counts = Counter(run.benchmark for run in (*situation.under_way, *chosen))
            chosen += _Choice(waiting[0].engine, capacity, situation, counts).among(waiting)
    return chosen


class _Choice:
    """The books of one engine, and of those that share its machine, while candidates pass by."""

    def __init__(
        self, engine: str, capacity: Capacity, situation: Situation, counts: Counter[str]
    ) -> None:
        self._capacity = capacity
        self._usage = dict(situation.usage)
        self._counts = counts  # of every benchmark, the runs under way and the booked ones
        self._held: set[str] = set()  # benchmarks of which a run in front is held back by its limit
        self._is_reserved = False  # whether somebody in front waits for room
        here = place(engine, situation.capacities)
        mine = (
            run.demand
            for run in situation.under_way
            if place(run.engine, situation.capacities) == here
        )
        self._room = room.left(capacity, mine)

    def among(self, candidates: Sequence[Run]) -> list[Run]:
        """Those that start, in order."""
        chosen = []
        queues = _queues(candidates)
        line = [self._place(runs) for runs in queues.values()]
        heapq.heapify(line)
        while line and self._room.is_open:
            *_, person = heapq.heappop(line)
            runs = queues[person]
            run = runs.pop()
            if self._may_start(run):
                chosen.append(run)
            if runs:
                heapq.heappush(line, self._place(runs))
        return chosen

    def _place(self, runs: Sequence[Run]) -> tuple[int, float, RunId, str]:
        """Where a person stands in line with the first of their runs. Lower is sooner."""
        run = runs[-1]
        return -run.priority, self._usage.get(run.submitter, 0.0), run.id, run.submitter

    def _may_start(self, run: Run) -> bool:
        if self._is_passed_over(run):
            return False
        fits = self._room.fits(run.demand)
        if fits or not self._is_reserved:
            self._book(run)
        self._is_reserved = self._is_reserved or not fits
        return fits

    def _is_passed_over(self, run: Run) -> bool:
        """Whether it is no matter of room now: others may take what this run would."""
        if run.benchmark in self._held or not fitting.can_fit(run.demand, self._capacity):
            return True
        limit = run.demand.concurrency
        if limit is None or self._counts[run.benchmark] < limit:
            return False
        self._held.add(run.benchmark)
        return True

    def _book(self, run: Run) -> None:
        self._room = self._room.without(run.demand)
        self._counts[run.benchmark] += 1
        self._usage[run.submitter] = self._usage.get(run.submitter, 0.0) + EXPECTED


def _queues(candidates: Sequence[Run]) -> dict[str, list[Run]]:
    """Each person's runs, the first in order at the end."""
    queues: dict[str, list[Run]] = {}
    for run in sorted(candidates, key=lambda run: (-run.priority, run.id), reverse=True):
        queues.setdefault(run.submitter, []).append(run)
    return queues
