"""Where runs run, and who waits to run there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Annotated, Final, TypedDict

from fastapi import APIRouter, Query
from starlette.responses import Response

from anubis.bootstrap.service import Service
from anubis.domain.demand import Capacity
from anubis.domain.run import BEFORE_START, UNDER_WAY, Run
from anubis.entrypoints.api.resources import documentation as docs
from anubis.entrypoints.api.resources import examples, showing
from anubis.entrypoints.api.resources.answering import Json, page
from anubis.entrypoints.api.resources.models import engines, runs
from anubis.entrypoints.api.resources.parameters import Here, Viewer
from anubis.ports.run_reader import RunQuery

router = APIRouter(prefix=docs.PREFIX, tags=["engines"])

MOST_READ: Final = 1_000
"""Runs under way, and runs that wait, that are looked at: more than all slots of all engines."""

DEPTH: Final = 100
"""Runs of each group that are put in order: the pages that people look at are exact."""


class CapacityShape(TypedDict):
    """What an engine has, or what is in use of it."""

    slots: int
    cpus: float
    memory_bytes: int
    gpus: int


class EngineShape(TypedDict):
    """What an engine can do, and how busy it is."""

    name: str
    strategies: list[str]
    needs_image: bool
    healthy: bool
    detail: str
    capacity: CapacityShape
    in_use: CapacityShape
    waiting: int


_EXAMPLE: Final = EngineShape(
    name="process",
    strategies=["single_node"],
    needs_image=False,
    healthy=True,
    detail="starts programs on the machine of the service",
    capacity=CapacityShape(slots=1, cpus=8.0, memory_bytes=16 * 2**30, gpus=0),
    in_use=CapacityShape(slots=1, cpus=0.0, memory_bytes=0, gpus=0),
    waiting=2,
)


_WAITING: Final = {**examples.NEW_RUN, "waiting_for": "waits for a free slot; 2 runs ahead"}


@router.get(
    "/engines",
    operation_id="listEngines",
    summary="List engines: what they can do, and how busy they are",
    responses=docs.answer(engines.Engines, {"engines": [_EXAMPLE]}, "All engines."),
)
async def list_engines(here: Here, _: Viewer) -> Response:
    """Capacity is declared in the settings of the service, or detected."""
    store = here.application.store
    under_way = await store.page(RunQuery(states=UNDER_WAY, limit=MOST_READ))
    waiting = await store.page(RunQuery(states=BEFORE_START, limit=MOST_READ))
    # In a thread: the first time, GPUs are looked for.
    capacities = await asyncio.to_thread(lambda: here.application.capacities)
    shown = [
        EngineShape(
            name=name,
            strategies=sorted(capabilities.strategies),
            needs_image=capabilities.needs_image,
            **_health(here),
            capacity=_capacity(capacities[name]),
            in_use=_in_use(run for run in under_way if run.engine == name),
            waiting=sum(run.engine == name for run in waiting),
        )
        for name, capabilities in sorted(here.application.engines.items())
    ]
    return Json({"engines": shown})


class _Health(TypedDict):
    healthy: bool
    detail: str


def _health(here: Service) -> _Health:
    if here.pulse.is_turning(here.application.clock):
        return _Health(healthy=True, detail="starts programs on the machine of the service")
    return _Health(healthy=False, detail="nothing is started: the worker does not turn")


def _capacity(capacity: Capacity) -> CapacityShape:
    return CapacityShape(
        slots=capacity.slots,
        cpus=capacity.cpus,
        memory_bytes=capacity.memory_bytes,
        gpus=capacity.gpus,
    )


def _in_use(under_way: Iterable[Run]) -> CapacityShape:
    demands = [run.demand for run in under_way]
    return CapacityShape(
        slots=len(demands),
        cpus=sum(demand.cpus for demand in demands),
        memory_bytes=sum(demand.memory_bytes for demand in demands),
        gpus=sum(demand.gpus for demand in demands),
    )


@router.get(
    "/queue",
    operation_id="listQueue",
    summary="List runs that wait",
    responses=docs.answer(runs.QueuePage, {"runs": [_WAITING], "next": None}, "A page of runs."),
)
async def list_queue(
    here: Here, _: Viewer, filters: Annotated[runs.QueueFilters, Query()]
) -> Response:
    """By priority and age, each with what it waits for. Who used the machine least lately comes
    first among those of equal priority, so the order may change until they start. Of each person's
    each benchmark, the first 100 are listed.
    """
    heads = await here.application.store.heads(
        now=here.application.clock.now(), states=BEFORE_START, each=DEPTH
    )
    line = sorted(heads, key=_place)
    if filters.cursor is not None:
        line = [run for run in line if _place(run) > _named(filters.cursor)]
    some, last = page(line, filters.limit)
    following = None if last is None else f"{last.priority}.{last.id}"
    return Json({"runs": await showing.runs(here, some), "next": following})


def _place(run: Run) -> tuple[int, str]:
    return -run.priority, run.id


def _named(cursor: str) -> tuple[int, str]:
    """The place that a cursor names, whether its run is still there or not."""
    priority, _, run_id = cursor.partition(".")
    return -int(priority), run_id
