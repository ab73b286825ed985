"""Why a run waits, in a sentence that a person can act on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from anubis.domain.demand import Capacity, place
from anubis.domain.run import Run, RunState
from anubis.stages.queueing import fitting, room, wording
from anubis.stages.queueing.room import Room

MOST_COUNTED = 1000
"""Runs ahead that are worth counting: whoever has more before them need not know how many."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """Where a run stands in the queue."""

    engine: str  #: of the run
    capacities: Mapping[str, Capacity]  #: of all engines
    under_way: Sequence[Run]  #: on all engines
    ahead: int  #: runs that are before it by priority and age; counted to one above MOST_COUNTED

    @property
    def capacity(self) -> Capacity | None:
        """Of its engine; None: there is no such engine."""
        return self.capacities.get(self.engine)


def reason(run: Run, standing: Standing) -> str:
    """What a run waits for, and how many wait before it."""
    if run.cancel_requested_at is not None:
        return "is being canceled"
    if run.state is RunState.FETCHING:
        return "brings what it needs"
    if standing.capacity is None:
        return f"there is no engine '{run.engine}' here; it ends as soon as it is its turn"
    if not fitting.can_fit(run.demand, standing.capacity):
        return f"cannot start: {_excess(run, standing.capacity)}"
    waits = _limit(run, standing) or _occupied(run, standing) or _missing(run, standing)
    if not waits:
        waits = "waits for its turn" if standing.ahead else "is about to start"
    return waits + _ahead(standing.ahead)


def _excess(run: Run, capacity: Capacity) -> str:
    """What it asks for in vain. Only if the engine became smaller since it was submitted."""
    missing = _shortages(run, room.whole(capacity))
    return f"it asks for {' and '.join(missing)}, and the engine has no more"


def _limit(run: Run, standing: Standing) -> str:
    limit = run.demand.concurrency
    count = sum(other.benchmark == run.benchmark for other in standing.under_way)
    if limit is None or count < limit:
        return ""
    return f"its benchmark has {wording.count(count, 'run')} under way, at most {limit:,} at once"


def _occupied(run: Run, standing: Standing) -> str:
    """Whether it is not a matter of amounts: somebody has the engine, or it wants all of it."""
    others = _neighbours(run, standing)
    assert standing.capacity is not None, "asked only where there is an engine"
    if not others or standing.capacity.slots == 1:
        return ""
    if run.demand.exclusive:
        count = f"{wording.count(len(others), 'run')} {'is' if len(others) == 1 else 'are'}"
        return f"waits for the engine to be free: it wants it for itself; {count} under way"
    if any(other.demand.exclusive for other in others):
        return "waits for the engine to be free: a run has it for itself"
    return ""


def _missing(run: Run, standing: Standing) -> str:
    assert standing.capacity is not None, "asked only where there is an engine"
    demands = (other.demand for other in _neighbours(run, standing))
    missing = _shortages(run, room.left(standing.capacity, demands))
    return f"waits for {' and '.join(missing)}" if missing else ""


def _neighbours(run: Run, standing: Standing) -> list[Run]:
    here = place(run.engine, standing.capacities)
    return [
        other
        for other in standing.under_way
        if other.id != run.id and place(other.engine, standing.capacities) == here
    ]


def _shortages(run: Run, free: Room) -> list[str]:
    return list(_each_shortage(run, free))


def _each_shortage(run: Run, free: Room) -> Iterator[str]:
    demand = run.demand
    if not free.has_gpus(demand):
        yield wording.gpus(demand.gpus) + _free(f"{free.gpus}", has_some=free.gpus > 0)
    if not free.has_cpus(demand):
        yield wording.cpus(demand.cpus) + _free(f"{free.cpus:g}", has_some=free.cpus > 0)
    if not free.has_memory(demand):
        some = free.memory_bytes > 0
        yield f"{wording.size(demand.memory_bytes)} of memory" + _free(
            wording.size(max(0, free.memory_bytes)), has_some=some
        )
    if free.slots <= 0:
        yield "a free slot"


def _free(amount: str, *, has_some: bool) -> str:
    return f" ({amount} free)" if has_some else ""


def _ahead(count: int) -> str:
    if count > MOST_COUNTED:
        return f"; more than {MOST_COUNTED:,} runs ahead"
    return f"; {wording.count(count, 'run')} ahead" if count else ""
