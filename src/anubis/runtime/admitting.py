"""The door of the worker: reads the queue, and says which runs may start now.

The rules are in the stage ``queueing``. Here is what they need to know: what waits and what is
under way, as the store has it, and what people have used lately.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from anubis.domain.demand import Capacity, place
from anubis.domain.run import BEFORE_START, TERMINAL, UNDER_WAY, Run
from anubis.ports.clock import Clock
from anubis.ports.run_reader import RunQuery
from anubis.ports.run_store import RunStore
from anubis.stages.queueing import choosing, fitting, room
from anubis.stages.queueing.shares import Shares

MOST_AT_ONCE = 32
"""Runs of one person's one benchmark on one engine that are looked at in one go. Rarely are more
slots free at the same moment, and then there is another round."""

MOST_UNDER_WAY = 1000
"""More than all slots of several workers; a bound for what is read."""

REMEMBERED = timedelta(days=1)
"""How far back, by their submission, runs are looked for that people should still pay for. After a
day, an hour of use counts as a fraction of a millisecond."""

MOST_REMEMBERED = 500

COSTLY = 0.002
"""Seconds. A choice among hundreds of people's benchmarks takes longer than this; then there is a
pause, in which others get the processor and more room comes together."""

PAUSE = 4
"""So many times as long as a costly choice took."""


ASK_AGAIN = 10.0
"""Seconds. A choice that started nothing is not made again until something has happened to any run.
What time alone changes (leases that end, how much people have used) is noticed so much later."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Admitted:
    """What may start, and what the choice was made beside."""

    chosen: Sequence[Run] = ()
    under_way: Sequence[Run] = ()
    leaves_some: bool  #: whether runs may have to wait
    is_partial: bool = False  #: whether more could start: ask again


class Admission:
    """Chooses for one worker."""

    def __init__(self, store: RunStore, clock: Clock, capacities: Mapping[str, Capacity]) -> None:
        self._store = store
        self._clock = clock
        self._capacities = capacities
        self._places = {engine: place(engine, capacities) for engine in capacities}
        self._shares = Shares()
        self._rests_until = 0.0
        self._in_vain: tuple[object, float, Admitted] | None = None  # when nothing could start
        self.due = math.inf  #: when to ask again, on the monotonic clock, if we could not choose

    async def begin(self) -> None:
        """Remember what people used before we came."""
        now = self._clock.now()
        query = RunQuery(states=TERMINAL, since=now - REMEMBERED, limit=MOST_REMEMBERED)
        self._shares = Shares()
        for run in await self._store.page(query):
            self._shares.add(run, now)

    def ended(self, run: Run) -> None:
        """Note what a run has used."""
        self._shares.add(run, self._clock.now())

    def free_slots(self, carried: Iterable[Run]) -> int:
        """How many runs could start at most, on the engine with the most room."""
        taken: dict[str, list[Run]] = {}
        for run in carried:
            taken.setdefault(place(run.engine, self._capacities), []).append(run)
        rooms = [
            room.left(capacity, (run.demand for run in taken.get(self._places[engine], ())))
            for engine, capacity in self._capacities.items()
        ]
        return max((each.slots for each in rooms if each.is_open), default=0)

    async def choose(self, carried: Sequence[Run]) -> Admitted:
        """Which runs may start beside those that this worker carries."""
        began = self._clock.monotonic()
        each = min(self.free_slots(carried), MOST_AT_ONCE)
        is_resting = each > 0 and began < self._rests_until
        self.due = self._rests_until if is_resting else math.inf
        if each <= 0 or is_resting:
            return Admitted(leaves_some=True)
        situation = (await self._store.last_sequence(), [run.id for run in carried])
        if (known := self._in_vain) and known[0] == situation and began < known[1]:
            return known[2]
        admitted = await self._choose(carried, each)
        self._in_vain = None if admitted.chosen else (situation, began + ASK_AGAIN, admitted)
        took = self._clock.monotonic() - began
        self._rests_until = began + took * (1 + PAUSE) if took > COSTLY else 0.0
        return admitted

    async def _choose(self, carried: Sequence[Run], each: int) -> Admitted:
        now = self._clock.now()
        candidates = await self._candidates(now, each)
        if not candidates:
            return Admitted(leaves_some=False)
        under_way = await self._under_way(carried)
        people = {run.submitter for run in candidates}
        situation = choosing.Situation(
            capacities=self._capacities,
            under_way=under_way,
            usage=self._shares.at(now, people, under_way),
        )
        chosen = choosing.choose(candidates, situation)
        return Admitted(
            chosen=chosen,
            under_way=under_way,
            leaves_some=len(chosen) < len(candidates),
            is_partial=len(chosen) >= each,
        )

    async def _candidates(self, now: datetime, each: int) -> Sequence[Run]:
        """The first of every person's every benchmark.

        Runs that could never start here, because the engine became smaller, wait in vain. As many
        more are looked at, or those behind them would wait in vain too.
        """
        most = each
        while True:
            found = await self._store.heads(now=now, states=BEFORE_START, each=most)
            vain = Counter(
                (run.submitter, run.benchmark, run.engine)
                for run in found
                if not self._can_start(run)
            )
            if each + max(vain.values(), default=0) <= most:
                return found
            most *= 2

    def _can_start(self, run: Run) -> bool:
        capacity = self._capacities.get(run.engine)
        return capacity is None or fitting.can_fit(run.demand, capacity)

    async def _under_way(self, carried: Sequence[Run]) -> Sequence[Run]:
        """Ours, also those that have not been moved yet, and what others carry.

        Counting is cheap and reading is not: only if the store has more than ours, we read them.
        """
        counts = await self._store.counts()
        ours = sum(run.state in UNDER_WAY for run in carried)
        if sum(counts.get(state, 0) for state in UNDER_WAY) <= ours:
            return carried
        known = {run.id for run in carried}
        stored = await self._store.page(RunQuery(states=UNDER_WAY, limit=MOST_UNDER_WAY))
        return [*carried, *(run for run in stored if run.id not in known)]
