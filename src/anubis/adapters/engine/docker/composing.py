"""From a unit of a plan to what Docker is told of its container."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

from anubis.adapters.engine.docker import copying
from anubis.adapters.engine.docker.shapes import (
    ContainerShape,
    HostShape,
    LogShape,
    MountShape,
    NetworkShape,
)
from anubis.adapters.engine.process import machine
from anubis.domain import blanks
from anubis.domain.plan import Plan, Resources, Unit, filled_unit
from anubis.domain.run import RunId

HOME, RUN, UNIT = "anubis.home", "anubis.run", "anubis.unit"
"""The labels on everything that we create."""

EMIT_PATH = "/tmp/benchmark-ai/fifo"  # noqa: S108 (inside the container, where the original had it)
EMIT_WAIT_SECONDS = 60

EXACT_LOG = {"max-size": "1000t", "max-file": "1", "compress": "false"}
"""Of Docker's log drivers only ``local`` gives back the very bytes that were written; ``json-file``
replaces what is no UTF-8. Nothing is rotated away: what a unit may write has a limit of its own."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Manners:
    """In what daemons differ."""

    log: LogShape
    has_init: bool
    """Whether it can put an init in front of the program. Without one, a program that does not
    handle SIGTERM does not hear it, since it is the first process of its container."""


DOCKERS = Manners(log={"Type": "local", "Config": EXACT_LOG}, has_init=True)
PODMANS = Manners(log={"Type": "k8s-file", "Config": {}}, has_init=True)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """Where a unit becomes a container."""

    names: Names
    manners: Manners
    fifo: str  #: what ``emit()`` writes to, on this machine
    has_network: bool  #: whether the run has a network of its own


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """How what belongs to one run of one home is called."""

    home: str  #: see ``home_id``
    run_id: RunId

    def container(self, unit: str) -> str:
        """The container of a unit. Only one can have the name: nothing is started twice."""
        return f"anubis-{self.home}-{self.run_id}-{unit}"

    @property
    def network(self) -> str:
        """The network of a run."""
        return f"anubis-{self.home}-{self.run_id}"

    def labels(self, unit: str = "") -> dict[str, str]:
        """What our things bear, so that they are found again."""
        mine = {HOME: self.home, RUN: self.run_id}
        return {**mine, UNIT: unit} if unit else mine


def home_id(directory: Path) -> str:
    """A short name of a home on this machine: two homes never touch each other's things."""
    return hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:10]


def needs_network(plan: Plan) -> bool:
    """Whether units must find each other. For a single one the daemon's own network is faster."""
    return len(plan.units) > 1


def network(names: Names) -> NetworkShape:
    """A network of the run's own, in which units are found by their names."""
    return {"Driver": "bridge", "Labels": names.labels()}


def placed(plan: Plan, name: str) -> Unit:
    """A unit with the hosts and ports of the others filled in: a unit is reached by its name, and
    has all ports to itself.
    """
    meanings = {blanks.name(blanks.host(unit.name)): unit.name for unit in plan.units}
    for unit in plan.units:
        meanings |= {blanks.name(blanks.port(unit.name, n)): str(n) for n in unit.ports}
    return filled_unit(plan.unit(name), meanings)


def obstacle(unit: Unit) -> str:
    """Why this unit cannot be a container here; empty if it can."""
    if unit.image is None:
        return f"the unit {unit.name} names no image, and the docker engine needs one"
    if unit.niceness:
        return "the docker engine cannot set hardware.niceness; leave it out, or limit the CPUs"
    for mount in unit.mounts:
        if not Path(mount.source).exists():
            return f"{mount.source}, to be mounted at {mount.target}, was not found"
    return ""


def container(setting: Setting, unit: Unit) -> ContainerShape:
    """The container of a unit whose blanks are filled in."""
    names = setting.names
    assert unit.image is not None, "see obstacle"
    shape: ContainerShape = {
        "Image": unit.image,
        "Env": [f"{name}={value}" for name, value in _environment(names.run_id, unit).items()],
        "Labels": names.labels(unit.name),
        "HostConfig": _host(setting, unit),
    }
    if unit.command:
        # In the place of the image's entry point, as Kubernetes understands a command.
        shape["Entrypoint"] = list(unit.command)
    if unit.arguments:
        shape["Cmd"] = list(unit.arguments)
    if unit.directory:
        shape["WorkingDir"] = unit.directory
    if setting.has_network:
        shape["Hostname"] = unit.name
        shape["NetworkingConfig"] = {"EndpointsConfig": {names.network: {"Aliases": [unit.name]}}}
    return shape


def _environment(run_id: RunId, unit: Unit) -> dict[str, str]:
    """What ``emit()`` needs, then the descriptor's; never that of whoever submitted."""
    return {
        "BENCHMARK_AI": "fifo",
        "BENCHMARK_AI_FIFO_FILEPATH": EMIT_PATH,
        "BENCHMARK_AI_FIFO_MAX_WAIT_TIME": str(EMIT_WAIT_SECONDS),
        **unit.environment,
        "ANUBIS_RUN_ID": run_id,
        "ANUBIS_UNIT": unit.name,
    }


def _host(setting: Setting, unit: Unit) -> HostShape:
    names, source = setting.names, setting.fifo
    emit: MountShape = {"Type": "bind", "Source": source, "Target": EMIT_PATH, "ReadOnly": False}
    mounts: list[MountShape] = [
        {"Type": "bind", "Source": m.source, "Target": m.target, "ReadOnly": True}
        for m in copying.lent(unit)
    ]
    host: HostShape = {
        "Init": setting.manners.has_init,
        "LogConfig": setting.manners.log,
        "Mounts": [*mounts, emit],
        "Privileged": unit.resources.privileged,
        "NetworkMode": names.network if setting.has_network else "default",
    }
    if unit.cpu_affinity:
        host["CpusetCpus"] = ",".join(map(str, unit.cpu_affinity))
    _limit(host, unit.resources)
    return host


def _limit(host: HostShape, resources: Resources) -> None:
    if resources.cpus is not None:
        host["NanoCpus"] = round(resources.cpus * 1e9)
    if resources.memory_bytes is not None:
        host["Memory"] = resources.memory_bytes
        host["MemorySwap"] = resources.memory_bytes  # of both together: no swap
    if resources.extended_shm and (size := shared_memory(resources)):
        host["ShmSize"] = size
    if resources.ulimits:
        host["Ulimits"] = [
            {"Name": name, "Soft": value, "Hard": value}
            for name, value in resources.ulimits.items()
        ]
    if resources.gpu_ids:
        ids = [str(number) for number in resources.gpu_ids]
        host["DeviceRequests"] = [{"DeviceIDs": ids, "Capabilities": [["gpu"]]}]


def shared_memory(resources: Resources) -> int:
    """How large ``/dev/shm`` may grow: to all the memory that the unit may use, or half of the
    machine's, as Linux itself does it; 0 where that is not known.
    """
    return resources.memory_bytes or (machine.memory_bytes("MemTotal") or 0) // 2
