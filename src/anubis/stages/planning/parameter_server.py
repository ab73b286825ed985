"""``mxnet_parameter_server``: a scheduler, servers that hold parameters, workers that train.

All run the same command; ``DMLC_ROLE`` tells a program which of them it is. They find each other
through the scheduler, and wait for it by themselves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Final

from anubis.domain import blanks
from anubis.domain.descriptor import GPUS
from anubis.domain.plan import Resources, Unit
from anubis.stages.planning import machines, programs, sizing
from anubis.stages.planning.layout import Draft, Layout, Task, definitions
from anubis.stages.planning.programs import Program

SCHEDULER: Final = "scheduler"
SERVER: Final = "server"
WORKER: Final = "worker"
DECIDING: Final = f"{WORKER}-0"

ROOT_PORT: Final = 9091
"""Where the scheduler listens; MXNet's own examples use it."""


def draft(task: Task) -> Draft:
    """One of the workers: the others have the same command, image and hardware."""
    wrong = (*sizing.obstacles(task.descriptor, task.place), *_obstacles_of_gpus(task))
    return Draft(programs=(_program(task, DECIDING, WORKER),), obstacles=wrong)


def _obstacles_of_gpus(task: Task) -> Iterator[str]:
    processes, gpus = sizing.size(task.descriptor).processes, task.descriptor.hardware.gpus or 0
    asked = task.descriptor.hardware.distributed.processes_per_instance
    if asked != GPUS and gpus % processes:
        yield (
            f"hardware.gpus: found {gpus} for {processes} workers on each instance, "
            f"expected a multiple of {processes}"
        )


def layout(task: Task) -> Layout:
    """The first worker decides. Scheduler and servers end by themselves when all workers have."""
    size = sizing.size(task.descriptor)
    scheduler = programs.unit(_program(task, SCHEDULER, SCHEDULER), task.place)
    return Layout(
        units=(
            dataclasses.replace(scheduler, ports=(ROOT_PORT,)),
            *_units(task, SERVER, size.instances),
            *_units(task, WORKER, size.total),
        ),
        deciding=DECIDING,
        metrics=tuple(definitions(task.descriptor.output)),
    )


def _units(task: Task, role: str, count: int) -> Iterator[Unit]:
    for index in range(count):
        yield programs.unit(_program(task, f"{role}-{index}", role), task.place)


def _program(task: Task, name: str, role: str) -> Program:
    # All have the data, for all have the same command, which may name it.
    program = programs.benchmark(task.descriptor, task.place, name, task.data)
    told = _told(task, name, role)
    resources = _resources(task, program.resources, role)
    program = dataclasses.replace(program, told=told, resources=resources)
    if role == WORKER:
        return program
    return dataclasses.replace(program, placement=machines.beside_own(program.placement))


def _resources(task: Task, machine: Resources, role: str) -> Resources:
    """Workers share what is asked for each machine; the others do little."""
    if role != WORKER:
        return programs.modest(task.descriptor.env)
    return sizing.share(machine, of=sizing.size(task.descriptor).processes)


def _told(task: Task, name: str, role: str) -> Mapping[str, str]:
    size = sizing.size(task.descriptor)
    told = {
        "DMLC_ROLE": role,
        "DMLC_PS_ROOT_URI": blanks.host(SCHEDULER),
        "DMLC_PS_ROOT_PORT": blanks.port(SCHEDULER, ROOT_PORT),
        "DMLC_NUM_SERVER": str(size.instances),
        "DMLC_NUM_WORKER": str(size.total),
    }
    if task.place.isolates:
        # Only then does the scheduler bind to all addresses and not to its host name, which its
        # library cannot.
        return {**told, "DMLC_USE_KUBERNETES": "1"}
    # Otherwise each would look for a network of the machine, which may have none.
    return {**told, "DMLC_NODE_HOST": blanks.host(name)}
