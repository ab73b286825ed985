"""From the machine that a descriptor names to where its programs may run and what they ask for.

Only for engines that choose among many machines; to the others an instance type says nothing.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Final

from anubis.domain import size
from anubis.domain.descriptor import Descriptor, Hardware, ServerHardware, Strategy
from anubis.domain.plan import Placement
from anubis.stages.planning import instances
from anubis.stages.planning.instances import Instance

ZONE_ID_LABEL: Final = "topology.k8s.aws/zone-id"
"""What nodes of EKS bear beside the name of their zone."""

_BENCHMARK: Final = "hardware"
_SERVER: Final = "server.hardware"
_LABEL: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")

Machine = Hardware | ServerHardware
"""What a descriptor says of one machine."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What must be free where a program starts; None: nothing in particular."""

    cpus: float | None = None
    memory_bytes: int | None = None


def equipped(descriptor: Descriptor) -> Descriptor:
    """The descriptor with the GPUs that its instance types have, where it does not say itself."""
    server = descriptor.server
    if server is not None and server.hardware.gpus is None:
        gpus = _gpus(server.hardware)
        server = dataclasses.replace(
            server, hardware=dataclasses.replace(server.hardware, gpus=gpus)
        )
    hardware = descriptor.hardware
    if hardware.gpus is None:
        hardware = dataclasses.replace(hardware, gpus=_gpus(hardware))
    return dataclasses.replace(descriptor, hardware=hardware, server=server)


def _gpus(machine: Machine) -> int:
    instance = instances.find(machine.instance_type)
    return instance.nvidia_gpus if instance else 0


def request(machine: Machine) -> Request:
    """What a program asks for that wants a machine of this type and does not say how much of it."""
    instance = instances.find(machine.instance_type)
    if instance is None:
        return Request()
    return Request(
        cpus=instance.cpus_for_programs if machine.cpus is None else None,
        memory_bytes=instance.bytes_for_programs if machine.memory_bytes is None else None,
    )


def placement(descriptor: Descriptor, machine: Machine) -> Placement:
    """Where a program may run. A server that names no zone is in that of its client."""
    wishes = descriptor.kubernetes
    zone, zone_id = machine.availability_zone, machine.aws_zone_id
    if not (zone or zone_id):
        zone = descriptor.hardware.availability_zone
        zone_id = descriptor.hardware.aws_zone_id
    by_id = {ZONE_ID_LABEL: zone_id} if zone_id and not zone else {}
    return Placement(
        instance_type=machine.instance_type,
        zone=zone,
        exclusive=bool(descriptor.hardware.exclusive),
        node_selector={**by_id, **wishes.node_selector},
        tolerations=wishes.tolerations,
        annotations=dict(wishes.annotations),
        service_account=wishes.service_account,
        pull_secrets=wishes.image_pull_secrets,
        priority_class=wishes.priority_class,
        runtime_class=wishes.runtime_class,
    )


def beside_own(placement: Placement) -> Placement:
    """The same for a program that does little: it takes no machine from those that do much."""
    return dataclasses.replace(placement, joins_own=placement.exclusive)


def obstacles(descriptor: Descriptor) -> Iterator[str]:
    """What no machine has, or cannot be called so, each with its field."""
    yield from _obstacles(descriptor.hardware, _BENCHMARK)
    if descriptor.server is not None and descriptor.hardware.strategy is Strategy.INFERENCE:
        yield from _obstacles(descriptor.server.hardware, _SERVER)


def _obstacles(machine: Machine, table: str) -> Iterator[str]:
    for field in ("instance_type", "availability_zone", "aws_zone_id"):
        value = getattr(machine, field)
        if value and not _LABEL.fullmatch(value):
            yield (
                f"{table}.{field}: found {value!r}, expected what a label of a node can be: 1 to "
                "63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"
            )
    if instance := instances.find(machine.instance_type):
        yield from _obstacles_of_size(machine, instance, table)


def _obstacles_of_size(machine: Machine, instance: Instance, table: str) -> Iterator[str]:
    if machine.cpus is not None and machine.cpus > instance.vcpus:
        yield (
            f"{table}.cpus: found {machine.cpus:g}, expected at most {instance.vcpus}: "
            f"the instance type '{instance.name}' has no more"
        )
    if machine.memory_bytes is not None and machine.memory_bytes > instance.memory_bytes:
        yield (
            f"{table}.memory: found {size.spoken(machine.memory_bytes)}, expected at most "
            f"{instance.memory_gib:g} GiB: the instance type '{instance.name}' has no more"
        )


def why_no_gpus(machine: Machine) -> str:
    """Why a machine that is asked for its GPUs has none; empty if it names no type."""
    name = machine.instance_type
    if not name:
        return ""
    instance = instances.find(name)
    if instance is None:
        return f"; how many the instance type '{name}' has is not known here"
    made = f" of NVIDIA, but {instance.gpus} {instance.gpu_model}" if instance.gpus else ""
    return f"; the instance type '{name}' has none{made}"
