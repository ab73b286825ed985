"""How large a distributed run is: machines, and processes on each."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final

from anubis.domain.descriptor import GPUS, Descriptor
from anubis.domain.plan import Resources
from anubis.stages.planning import machines
from anubis.stages.planning.place import Place

MOST: Final = 1_024
"""Machines, and processes in all: more than any of our engines starts for one run."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """Machines (or what stands for one here), and processes on each."""

    instances: int
    processes: int

    @property
    def total(self) -> int:
        """All processes."""
        return self.instances * self.processes


def size(descriptor: Descriptor) -> Size:
    """What ``[hardware.distributed]`` says; see ``obstacles`` for what cannot be.

    Bounded: Python does not even print a number as large as a descriptor can hold.
    """
    asked = descriptor.hardware.distributed
    each = asked.processes_per_instance
    processes = max(descriptor.hardware.gpus or 0, 1) if each == GPUS else each
    return Size(instances=min(asked.num_instances, MOST + 1), processes=min(processes, MOST + 1))


def obstacles(descriptor: Descriptor, place: Place) -> Iterator[str]:
    """What is wrong with the size."""
    hardware = descriptor.hardware
    if hardware.distributed.processes_per_instance == GPUS and not hardware.gpus:
        yield (
            "hardware.distributed.processes_per_instance: found 'gpus' without GPUs, expected "
            "hardware.gpus above zero, or a number of processes"
            f"{machines.why_no_gpus(hardware) if place.has_machines else ''}"
        )
    if size(descriptor).total > MOST:
        yield (
            f"hardware.distributed: found more than {MOST:,} processes, expected at most that "
            "many: num_instances times processes_per_instance"
        )


def share(machine: Resources, *, times: int = 1, of: int = 1) -> Resources:
    """What ``times`` machines may use, or one of several programs ``of`` a machine."""

    def part(number: float | None) -> float | None:
        return None if number is None else number * times / of

    def whole(number: int | None) -> int | None:
        return None if number is None else number * times // of

    return dataclasses.replace(
        machine,
        cpus=part(machine.cpus),
        memory_bytes=whole(machine.memory_bytes),
        requested_cpus=part(machine.requested_cpus),
        requested_memory_bytes=whole(machine.requested_memory_bytes),
        gpus=machine.gpus * times // of,
    )
