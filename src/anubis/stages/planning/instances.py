"""What the instance types of Amazon EC2 have, and how much of it a program can ask for.

A descriptor that names an instance type wants one of these machines as a whole. A cluster gives a
program less than the whole: some is kept by the machine itself. What is asked for here fits on a
usual node of EKS, and is more than half of all but the smallest, so that two such programs do not
share one.

The table is read when the first type is looked up. Types that it does not have are no error.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_TABLE: Final = Path(__file__).with_name("instances.toml")
_SAGEMAKER: Final = "ml."
"""SageMaker calls the same machines so."""

_NVIDIA: Final = "NVIDIA"

_MIB: Final = 2**20
_GIB: Final = 2**30

_SEEN_SHARE: Final = 0.925
"""Of the memory that a type has by name, a kernel sees less: firmware and hypervisor keep up to
7.5 % of it. Karpenter counts with the same share."""

_EVICTION_BYTES: Final = 100 * _MIB
"""The kubelet puts pods out when less than this is free."""

_DAEMON_CPUS: Final = 0.5
_DAEMON_BYTES: Final = 512 * _MIB
"""For what runs on every node: network, storage, logs, metrics, devices; and our recorder."""

_CPU_STEPS: Final = ((1, 0.06), (2, 0.01), (4, 0.005), (math.inf, 0.0025))
"""What EKS keeps for the kubelet: this part of the CPUs up to that number."""

_POD_STEPS: Final = ((8, 110), (48, 250), (math.inf, 737))
"""The most pods on a node of EKS, by its vCPUs: what interfaces or prefixes allow at most."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Instance:
    """One instance type."""

    name: str
    vcpus: int
    memory_gib: float
    gpus: int = 0  #: of any make
    gpu_model: str = ""

    @property
    def memory_bytes(self) -> int:
        """The same in bytes."""
        return int(self.memory_gib * _GIB)

    @property
    def nvidia_gpus(self) -> int:
        """GPUs as ``hardware.gpus`` counts them: those that CUDA knows."""
        return self.gpus if self.gpu_model.startswith(_NVIDIA) else 0

    @property
    def cpus_for_programs(self) -> float | None:
        """CPUs that a program can ask for; None if hardly any are left."""
        left = self.vcpus - _kubelet_cpus(self.vcpus) - _DAEMON_CPUS
        tenths = math.floor(left * 10)
        return tenths / 10 if tenths > 0 else None

    @property
    def bytes_for_programs(self) -> int | None:
        """Memory that a program can ask for; None if hardly any is left."""
        seen = self.memory_gib * _GIB * _SEEN_SHARE
        left = seen - _kubelet_bytes(self.vcpus) - _EVICTION_BYTES - _DAEMON_BYTES
        whole = math.floor(left / _MIB)
        return whole * _MIB if whole > 0 else None


def _kubelet_cpus(vcpus: int) -> float:
    kept, below = 0.0, 0.0
    for up_to, part in _CPU_STEPS:
        kept += max(min(vcpus, up_to) - below, 0) * part
        below = up_to
    return kept


def _kubelet_bytes(vcpus: int) -> int:
    """EKS keeps 255 MiB, and 11 MiB for each pod that a node may have."""
    pods = next(pods for up_to, pods in _POD_STEPS if vcpus <= up_to)
    return (255 + 11 * pods) * _MIB


def find(name: str) -> Instance | None:
    """The type of this name, also as SageMaker writes it; None if we do not know it."""
    family, _, size = name.strip().lower().removeprefix(_SAGEMAKER).partition(".")
    return _family(family).get(size)


def names() -> Iterator[str]:
    """All types that we know."""
    for family in _table()["families"]:
        yield from (instance.name for instance in _family(family).values())


@functools.cache
def _table() -> Mapping[str, Mapping[str, str]]:
    # Most plans name no type of a machine; they should not pay for the import.
    import tomllib

    return tomllib.loads(_TABLE.read_text("utf-8"))


@functools.cache
def _known(family: str) -> Mapping[str, Instance]:
    table = _table()
    model = table["gpu_models"].get(family, "")
    rows = (row.split() for row in table["families"][family].split(","))
    return {
        size: Instance(
            name=f"{family}.{size}",
            vcpus=int(vcpus),
            memory_gib=float(memory),
            gpus=int(gpus[0]) if gpus else 0,
            gpu_model=model,
        )
        for size, vcpus, memory, *gpus in rows
    }


def _family(family: str) -> Mapping[str, Instance]:
    # Only families that exist are kept in memory: names come from users.
    return _known(family) if family in _table()["families"] else {}
