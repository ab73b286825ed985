"""Where a benchmark wants to run: ``[hardware]`` and ``[server.hardware]``."""

from __future__ import annotations

import dataclasses
import enum
from typing import Final, Literal

GPUS: Final = "gpus"
"""One process for each GPU of the instance type, in ``processes_per_instance``."""


class Strategy(enum.StrEnum):
    """How the programs of a run are laid out over machines."""

    SINGLE_NODE = "single_node"  #: one program
    HOROVOD = "horovod"  #: a launcher and workers that talk MPI
    INFERENCE = "inference"  #: a server and a client that measures it
    MXNET_PARAMETER_SERVER = "mxnet_parameter_server"  #: documented by the original, never built


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Distributed:
    """How many machines and processes a distributed strategy uses."""

    num_instances: int = 2
    processes_per_instance: int | Literal["gpus"] = 1


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ServerHardware:
    """Where the server of an inference benchmark runs."""

    instance_type: str = ""  #: empty: whatever the engine has
    aws_zone_id: str = ""
    availability_zone: str = ""  #: wins over ``aws_zone_id``
    cpus: float | None = None  #: that must be free, beside those of the client
    memory_bytes: int | None = None  #: that must be free, beside that of the client
    gpus: int | None = None  #: None: none, or those of the instance type where there is one
    cpu_affinity: tuple[int, ...] = ()  #: sorted, without repeats; empty: all CPUs
    niceness: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Hardware:
    """Where the benchmark itself runs. What it asks for is for each machine."""

    instance_type: str = ""  #: empty: whatever the engine has
    strategy: Strategy = Strategy.SINGLE_NODE
    aws_zone_id: str = ""
    availability_zone: str = ""  #: wins over ``aws_zone_id``
    cpus: float | None = None  #: that must be free; None: nothing in particular
    memory_bytes: int | None = None  #: that must be free; None: nothing in particular
    gpus: int | None = None  #: None: none, or those of the instance type where there is one
    exclusive: bool | None = None  #: None: as the installation does it
    distributed: Distributed = dataclasses.field(default_factory=Distributed)
    cpu_affinity: tuple[int, ...] = ()  #: sorted, without repeats; empty: all CPUs
    niceness: int = 0
