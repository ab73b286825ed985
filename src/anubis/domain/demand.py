"""What a run asks of the machine it is going to run on: the words of the queue."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100
"""Enough steps for every team's ladder, few enough to be written by hand."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """What must be free before a run may start. Zero asks for nothing in particular."""

    cpus: float = 0.0
    memory_bytes: int = 0
    gpus: int = 0
    exclusive: bool = False  #: nothing else of ours may run on the engine meanwhile
    concurrency: int | None = None  #: most runs of the same benchmark at once; None: no limit


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Capacity:
    """What an engine has in all, declared by its operator or detected."""

    slots: int  #: most runs at once, whatever they ask for
    cpus: float
    memory_bytes: int
    gpus: int
    numbers_gpus: bool = True  #: whether we say which GPUs a run gets; else the engine does
    machine: str = ""
    """Engines with the same text here share one machine, and all that it has. Empty: of its own."""


def place(engine: str, capacities: Mapping[str, Capacity]) -> str:
    """Where the runs of an engine compete for room: the same text for engines of one machine."""
    capacity = capacities.get(engine)
    return (capacity.machine if capacity else "") or engine
