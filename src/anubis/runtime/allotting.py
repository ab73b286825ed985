"""Which GPUs a run may use: so many as it asked for, and none that another run has.

Written down as an event of the run in the step that makes it STARTING, so that it holds over a
crash. Programs learn it from ``CUDA_VISIBLE_DEVICES``; numbers are those of ``nvidia-smi``.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from datetime import datetime

from anubis.domain.demand import Capacity, place
from anubis.domain.errors import RunNotFound
from anubis.domain.event import Event, EventKind, NewEvent
from anubis.domain.plan import Plan, Unit
from anubis.domain.run import Run, RunId
from anubis.ports.run_reader import RunReader

GPUS = "gpus"
"""What the event's datum is called."""


class Allotments:
    """Gives out the GPUs of the engines. One per worker."""

    def __init__(self, store: RunReader, capacities: Mapping[str, Capacity]) -> None:
        self._store = store
        self._capacities = capacities
        self._given: dict[RunId, tuple[int, ...]] = {}  # to runs that may not have it noted yet

    async def give(self, run: Run, under_way: Sequence[Run]) -> tuple[int, ...]:
        """GPUs for a run that is about to start beside those under way; none if it wants none, or
        if its engine gives them out itself.
        """
        capacity = self._capacities.get(run.engine)
        if not run.demand.gpus or capacity is None or not capacity.numbers_gpus:
            return ()
        others = [other for other in under_way if other.demand.gpus and other.id != run.id]
        self._given = {other.id: await self._of(other) for other in others}
        here = (
            other.id
            for other in others
            if place(other.engine, self._capacities) == place(run.engine, self._capacities)
        )
        taken = set(itertools.chain.from_iterable(self._given[other] for other in here))
        numbers = (number for number in range(capacity.gpus) if number not in taken)
        self._given[run.id] = tuple(itertools.islice(numbers, run.demand.gpus))
        return self._given[run.id]

    async def _of(self, run: Run) -> tuple[int, ...]:
        if run.id in self._given:
            return self._given[run.id]
        try:
            return noted(await self._store.events(run.id))
        except RunNotFound:  # it ended and was purged in this moment
            return ()


def note(gpus: Sequence[int], at: datetime) -> NewEvent:
    """The event that says which GPUs a run was given."""
    text = ", ".join(map(str, gpus))
    message = f"uses {'GPU' if len(gpus) == 1 else 'GPUs'} {text}"
    return NewEvent(at=at, kind=EventKind.NOTE, message=message, data={GPUS: text})


def noted(events: Sequence[Event]) -> tuple[int, ...]:
    """The GPUs that a run was given, by its events; none if it was not given any."""
    for event in events:
        if event.kind is EventKind.NOTE and isinstance(text := event.data.get(GPUS), str):
            return tuple(int(number) for number in text.split(","))
    return ()


def equipped(plan: Plan, gpus: Sequence[int]) -> Plan:
    """The plan, each of its units told which GPUs it may use. What the descriptor says wins.

    A unit gets as many as it asks for; where no unit asks for itself, all may use all of them.
    """
    if not any(unit.resources.gpus for unit in plan.units):
        units = tuple(_told(unit, tuple(gpus)) for unit in plan.units)
    else:
        left = iter(gpus)
        units = tuple(
            _told(unit, tuple(itertools.islice(left, unit.resources.gpus))) for unit in plan.units
        )
    return dataclasses.replace(plan, units=units)


def _told(unit: Unit, gpus: tuple[int, ...]) -> Unit:
    resources = dataclasses.replace(unit.resources, gpu_ids=gpus)
    if unit.image is not None:  # it sees only these, under numbers of its own
        return dataclasses.replace(unit, resources=resources)
    variables = {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # CUDA's own order is another one than nvidia-smi's
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus)),
    }
    environment = {**variables, **unit.environment}
    return dataclasses.replace(unit, resources=resources, environment=environment)
