"""How large a distributed run is: machines, and processes on each."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final

from anubis.domain.descriptor import GPUS, Descriptor
from anubis.domain.plan import Resources
from anubis.stages.planning import programs

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
    processes = max(descriptor.hardware.gpus, 1) if each == GPUS else each
    return Size(instances=min(asked.num_instances, MOST + 1), processes=min(processes, MOST + 1))


def obstacles(descriptor: Descriptor) -> Iterator[str]:
    """What is wrong with the size."""
    hardware = descriptor.hardware
    if hardware.distributed.processes_per_instance == GPUS and not hardware.gpus:
        yield (
            "hardware.distributed.processes_per_instance: found 'gpus' without GPUs, expected "
            "hardware.gpus above zero, or a number of processes"
        )
    if size(descriptor).total > MOST:
        yield (
            f"hardware.distributed: found more than {MOST:,} processes, expected at most that "
            "many: num_instances times processes_per_instance"
        )


def share(descriptor: Descriptor, *, times: int = 1, of: int = 1) -> Resources:
    """What ``times`` machines may use, or one of several programs ``of`` a machine."""
    hardware = descriptor.hardware
    cpus, memory = hardware.cpus, hardware.memory_bytes
    return programs.resources(
        descriptor.env,
        None if cpus is None else cpus * times / of,
        None if memory is None else memory * times // of,
        hardware.gpus * times // of,
    )
