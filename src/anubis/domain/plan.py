"""A plan: the units a run needs, their order, and which unit's exit decides the outcome."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from anubis.domain import blanks, dataset
from anubis.domain.metric import MetricDefinition

SCRIPTS_VARIABLE: Final = "BAI_SCRIPTS_PATH"
"""Tells a program where the code is that was submitted with its descriptor."""

SOLE: Final = "benchmark"
"""The unit of a plan that needs only one."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How long each state may last, how much a program may write, and how many may run at once.

    From ``[limits]``.
    """

    fetching: timedelta = timedelta(hours=24)
    """The original gave up downloads after 24 hours; we keep that."""

    queued: timedelta = timedelta(days=7)
    """A week: a nightly benchmark that waited through seven nights will not be missed."""

    capacity: timedelta = timedelta(hours=1)
    """How long a unit may wait until a machine of a cluster has room for it. An autoscaler takes
    minutes; who waits an hour waits for a machine that does not come."""

    pulling: timedelta = timedelta(minutes=30)
    """How long a machine of a cluster may take to bring an image."""

    starting: timedelta = timedelta(hours=1)
    """Long enough for a large image on a slow registry."""

    readiness: timedelta = timedelta(minutes=10)
    """How long a unit that others wait for may take to become ready. Loading a large model takes
    minutes; a server that is not ready after ten hangs."""

    running: timedelta = timedelta(hours=24)
    """A day: longer training is rare enough to be said in the descriptor."""

    finishing: timedelta = timedelta(hours=1)
    """Storing and indexing 10 GiB of output takes minutes."""

    grace: timedelta = timedelta(seconds=10)
    """Between SIGTERM and SIGKILL. Docker's habit, which programs are written for."""

    output_bytes: int = 10 * 1024**3
    """What all streams of a unit may write together before the run is stopped."""

    concurrency: int | None = None
    """Most runs of the same benchmark at once; for the queue. None: as many as there is room."""


class ProbeKind(enum.StrEnum):
    """How a unit is asked whether it is ready."""

    HTTP = "http"
    HTTPS = "https"  #: whatever certificate it has
    TCP = "tcp"  #: ready when it accepts a connection


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """A question that a unit must answer, again and again. As Kubernetes has them."""

    kind: ProbeKind
    port: int  #: as the unit declares it
    path: str = ""  #: for HTTP
    initial_delay: timedelta = timedelta()
    period: timedelta = timedelta(seconds=10)
    timeout: timedelta = timedelta(seconds=1)
    success_threshold: int = 1  #: answers in a row until it counts as ready
    failure_threshold: int = 3  #: failures in a row until it no longer does


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Mount:
    """Something of the machine that a unit sees in its own file system."""

    source: str  #: a path, or a blank that stands for one
    target: str  #: an absolute path
    read_only: bool = True
    """If not, the unit may change what it sees. Whether the machine then sees the change is for the
    engine: nobody relies on it."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Resources:
    """What a unit may use. For engines that can enforce it."""

    cpus: float | None = None  #: None: all
    memory_bytes: int | None = None  #: None: all
    requested_cpus: float | None = None
    """That must be free where it starts, though it may use more; only without ``cpus``, which says
    both. None: nothing in particular."""
    requested_memory_bytes: int | None = None  #: likewise, only without ``memory_bytes``
    gpus: int = 0
    gpu_ids: tuple[int, ...] = ()  #: which ones, once the run was given them
    extended_shm: bool = True  #: whether ``/dev/shm`` may grow beyond the engine's usual size
    privileged: bool = False
    ulimits: Mapping[str, int] = dataclasses.field(default_factory=dict)  #: -1: no limit


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Toleration:
    """A taint of machines that a unit does not mind. As Kubernetes has them."""

    key: str = ""  #: empty: whatever it is called
    operator: str = "Equal"  #: or ``Exists``
    value: str = ""
    effect: str = ""  #: empty: every effect


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Where among many machines a unit may run, and as whom. For engines that have many."""

    instance_type: str = ""  #: empty: any
    zone: str = ""  #: empty: any
    exclusive: bool = False  #: no other benchmark on the same machine
    joins_own: bool = False
    """Only with ``exclusive``: it may be beside programs of its own run. What does little needs no
    machine for itself."""
    node_selector: Mapping[str, str] = dataclasses.field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    service_account: str = ""  #: empty: as the installation says
    pull_secrets: tuple[str, ...] = ()
    priority_class: str = ""
    runtime_class: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """One program of a run. Texts may hold blanks (see ``blanks``)."""

    name: str
    command: tuple[str, ...]  #: no shell is involved; empty: what the image does by itself
    arguments: tuple[str, ...] = ()  #: for what the image does by itself; only without a command
    environment: Mapping[str, str]  #: from the descriptor; wins over everything else
    inherited: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The submitter's own environment, for engines that run on the submitter's machine. What the
    engine itself gives every program comes on top of it, and ``environment`` on top of that."""
    directory: str | None = None  #: working directory; the engine's default when None
    image: str | None = None
    script: str = ""  #: an archive of code that it needs; ``blanks.SCRIPTS`` stands for its place
    cpu_affinity: tuple[int, ...] = ()  #: empty: all CPUs
    niceness: int = 0
    mounts: tuple[Mount, ...] = ()  #: for engines whose units have files of their own
    resources: Resources = dataclasses.field(default_factory=Resources)
    ports: tuple[int, ...] = ()  #: where it listens
    readiness: Probe | None = None  #: None: it is ready as soon as it runs
    liveness: Probe | None = None
    after: tuple[str, ...] = ()  #: units that must be ready before it is started
    is_service: bool = False
    """Whether it must live until the deciding unit has ended, and is then stopped. If it ends
    before, whatever its exit code, the run has failed. Of other units that do not decide, only a
    failure counts; when the deciding unit has ended, they get ``limits.grace`` to end too."""
    placement: Placement = dataclasses.field(default_factory=Placement)
    tags_ranks: bool = False  #: whether its lines begin with ``[1,3]<stdout>:``, as of rank 3


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Fetch:
    """Data that must be here before any unit starts."""

    uri: str
    checksum: str = ""  #: ``algorithm:hex``; empty: unknown
    unpack: bool = False
    field: str = ""  #: where the descriptor asks for it: ``data.sources[0]``

    @property
    def reference(self) -> dataset.Reference:
        """What the cache is asked for. Raises UserError if the checksum is none."""
        return dataset.Reference(
            uri=self.uri, checksum=dataset.checksum(self.checksum), unpack=self.unpack
        )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """All units of a run. The outcome is decided by the exit of ``deciding``."""

    units: tuple[Unit, ...]
    deciding: str
    limits: Limits
    metrics: tuple[MetricDefinition, ...] = ()  #: what to look for in the output
    fetches: tuple[Fetch, ...] = ()
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Name to content of small files that units need, below ``blanks.FILES``."""
    needs_keys: bool = False  #: whether units talk over ssh: ``keys/`` below ``blanks.FILES``
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Of the descriptor, for engines whose things bear labels."""
    submitter: str = ""  #: likewise
    schedule: str = ""  #: likewise: the id of the one that fired it; empty: none did
    protected: tuple[str, ...] = ()
    """Paths of this machine that no unit may change, known once the run has its place: datasets,
    which other runs read too."""

    def __post_init__(self) -> None:
        names = {unit.name for unit in self.units}
        if self.deciding not in names:
            raise ValueError(f"the deciding unit {self.deciding!r} is not among the units")
        for unit in self.units:
            if unknown := set(unit.after) - names:
                raise ValueError(f"{unit.name} starts after {sorted(unknown)}, which are no units")

    def unit(self, name: str) -> Unit:
        """The unit of this name, which must be one."""
        return next(unit for unit in self.units if unit.name == name)

    @property
    def is_simple(self) -> bool:
        """Whether there is nothing to conduct: one unit, with no probes."""
        return len(self.units) == 1 and self.units[0].liveness is None


def scripts(plan: Plan) -> tuple[str, ...]:
    """The archives of code that the units need, each once."""
    return tuple(dict.fromkeys(unit.script for unit in plan.units if unit.script))


def depth(plan: Plan) -> int:
    """How many units begin one after another, at most."""
    after = {unit.name: unit.after for unit in plan.units}

    @functools.cache
    def steps(name: str) -> int:
        return 1 + max(map(steps, after[name]), default=0)

    return max(map(steps, after))


def filled(plan: Plan, meanings: Mapping[str, str]) -> Plan:
    """The plan with the blanks that the table knows filled in."""
    if not meanings:
        return plan
    units = tuple(filled_unit(unit, meanings) for unit in plan.units)
    files = {name: blanks.filled(text, meanings) for name, text in plan.files.items()}
    return dataclasses.replace(plan, units=units, files=files)


def filled_unit(unit: Unit, meanings: Mapping[str, str]) -> Unit:
    """The unit with the blanks that the table knows filled in."""
    return dataclasses.replace(
        unit,
        command=tuple(blanks.filled(word, meanings) for word in unit.command),
        arguments=tuple(blanks.filled(word, meanings) for word in unit.arguments),
        environment={
            name: blanks.filled(value, meanings) for name, value in unit.environment.items()
        },
        mounts=tuple(
            dataclasses.replace(mount, source=blanks.filled(mount.source, meanings))
            for mount in unit.mounts
        ),
    )


def to_json(plan: Plan) -> str:
    """Write a plan down, for the time between submission and start."""
    return json.dumps(_fields(plan), default=_plain, separators=(",", ":"))


def _fields(value: object) -> dict[str, object]:
    """The fields of one of our values that are not as usual."""
    # By hand: dataclasses.asdict would copy every variable of the environment, at ten times the
    # price of writing them.
    usual = _USUAL[type(value)]
    found = ((name, getattr(value, name)) for name in usual)
    return {name: field for name, field in found if field != usual[name]}


def _plain(value: object) -> object:
    """What JSON has no word for: our values, durations in seconds, mappings that are no dict."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if type(value) in _USUAL:
        return _fields(value)
    assert isinstance(value, Mapping), f"a plan holds no {type(value).__name__}"
    return dict(value)


_NOTHING = object()


def _usual(kind: type[Any]) -> dict[str, object]:
    """The fields of a kind of value, with what they are when nobody says anything."""
    return {
        field.name: (
            field.default_factory()
            if field.default_factory is not dataclasses.MISSING
            else _NOTHING
            if field.default is dataclasses.MISSING
            else field.default
        )
        for field in dataclasses.fields(kind)
    }


_USUAL: Final[Mapping[type, dict[str, object]]] = {
    kind: _usual(kind)
    for kind in (
        Limits,
        Probe,
        Mount,
        Resources,
        Toleration,
        Placement,
        Unit,
        Fetch,
        Plan,
        MetricDefinition,
    )
}
_COUNTS = ("output_bytes", "concurrency")  # of the limits, those that are no durations
_SPANS = ("initial_delay", "period", "timeout")  # of a probe, those that are durations


def from_json(text: str) -> Plan:
    """Read a plan that ``to_json`` wrote; what an older version did not know is as usual."""
    data = json.loads(text)
    data["units"] = tuple(_unit(unit) for unit in data["units"])
    data["limits"] = _limits(data["limits"])
    data["metrics"] = tuple(MetricDefinition(**metric) for metric in data.get("metrics", ()))
    data["fetches"] = tuple(Fetch(**fetch) for fetch in data.get("fetches", ()))
    data["protected"] = tuple(data.get("protected", ()))
    return Plan(**data)


def _limits(data: dict[str, Any]) -> Limits:
    for name in data.keys() - set(_COUNTS):
        data[name] = timedelta(seconds=data[name])
    return Limits(**data)


def _unit(data: dict[str, Any]) -> Unit:
    for name in ("command", "arguments", "cpu_affinity", "ports", "after"):
        if name in data:
            data[name] = tuple(data[name])
    if "mounts" in data:
        data["mounts"] = tuple(Mount(**mount) for mount in data["mounts"])
    if "resources" in data:
        data["resources"] = _resources(data["resources"])
    for name in ("readiness", "liveness"):
        if data.get(name):
            data[name] = probe_from_json(data[name])
    if "placement" in data:
        data["placement"] = _placement(data["placement"])
    return Unit(**data)


def _placement(data: dict[str, Any]) -> Placement:
    data["tolerations"] = tuple(Toleration(**one) for one in data.get("tolerations", ()))
    data["pull_secrets"] = tuple(data.get("pull_secrets", ()))
    return Placement(**data)


def _resources(data: dict[str, Any]) -> Resources:
    data["gpu_ids"] = tuple(data.get("gpu_ids", ()))
    return Resources(**data)


def probe_from_json(data: Mapping[str, Any]) -> Probe:
    """Read one probe of a plan; for those who were handed only that."""
    spans = {name: timedelta(seconds=data[name]) for name in _SPANS if name in data}
    return Probe(**{**data, **spans, "kind": ProbeKind(data["kind"])})
