"""What is free on an engine, and whether a demand fits into it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from anubis.domain.demand import Capacity, Demand

_TOLERANCE = 1e-6
"""CPUs may be fractions, and ten times 0.1 is not quite 1."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """What is left of an engine. Below zero where somebody in front waits for more than that."""

    slots: int
    cpus: float
    memory_bytes: int
    gpus: int
    is_empty: bool = True  #: nobody has, or waits in front for, anything of it
    is_closed: bool = False  #: somebody has, or waits in front for, all of it

    @property
    def is_open(self) -> bool:
        """Whether anything at all could still fit."""
        return self.slots > 0 and not self.is_closed

    def fits(self, demand: Demand) -> bool:
        """Whether a run with this demand may start. What it does not ask for may be used up."""
        return (
            self.is_open
            and (self.is_empty or not demand.exclusive)
            and self.has_cpus(demand)
            and self.has_memory(demand)
            and self.has_gpus(demand)
        )

    def has_cpus(self, demand: Demand) -> bool:
        """Whether there are CPUs enough."""
        return not demand.cpus or demand.cpus <= self.cpus + _TOLERANCE

    def has_memory(self, demand: Demand) -> bool:
        """Whether there is memory enough."""
        return not demand.memory_bytes or demand.memory_bytes <= self.memory_bytes

    def has_gpus(self, demand: Demand) -> bool:
        """Whether there are GPUs enough."""
        return not demand.gpus or demand.gpus <= self.gpus

    def without(self, demand: Demand) -> Room:
        """The room that is left beside a run with this demand."""
        return Room(
            slots=self.slots - 1,
            cpus=self.cpus - demand.cpus,
            memory_bytes=self.memory_bytes - demand.memory_bytes,
            gpus=self.gpus - demand.gpus,
            is_empty=False,
            is_closed=self.is_closed or demand.exclusive,
        )


def whole(capacity: Capacity) -> Room:
    """An engine on which nothing runs."""
    return Room(
        slots=capacity.slots,
        cpus=capacity.cpus,
        memory_bytes=capacity.memory_bytes,
        gpus=capacity.gpus,
    )


def left(capacity: Capacity, demands: Iterable[Demand]) -> Room:
    """An engine on which runs with these demands are under way."""
    taken = tuple(demands)  # added up by hand: this is asked whenever a run ends
    return Room(
        slots=capacity.slots - len(taken),
        cpus=capacity.cpus - sum(demand.cpus for demand in taken),
        memory_bytes=capacity.memory_bytes - sum(demand.memory_bytes for demand in taken),
        gpus=capacity.gpus - sum(demand.gpus for demand in taken),
        is_empty=not taken,
        is_closed=any(demand.exclusive for demand in taken),
    )
