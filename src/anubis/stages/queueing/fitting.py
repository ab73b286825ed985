"""What an engine could never give, however empty it is."""

from __future__ import annotations

from collections.abc import Iterator

from anubis.domain.demand import Capacity, Demand
from anubis.stages.queueing import room, wording


def can_fit(demand: Demand, capacity: Capacity) -> bool:
    """Whether a run with this demand could start on the engine if it were empty."""
    return room.whole(capacity).fits(demand)


def obstacles(demand: Demand, capacity: Capacity, engine: str) -> Iterator[str]:
    """One line for each field of the descriptor that asks for more than there is."""
    empty = room.whole(capacity)
    if not empty.has_cpus(demand):
        yield _line("hardware.cpus", f"{demand.cpus:g}", f"{capacity.cpus:g}", engine)
    if not empty.has_memory(demand):
        found, most = wording.size(demand.memory_bytes), wording.size(capacity.memory_bytes)
        yield _line("hardware.memory", found, most, engine)
    if not empty.has_gpus(demand):
        yield _line("hardware.gpus", f"{demand.gpus}", f"{capacity.gpus}", engine)


def _line(field: str, found: str, most: str, engine: str) -> str:
    return f"{field}: found {found}, expected at most {most}: the engine '{engine}' has no more"
