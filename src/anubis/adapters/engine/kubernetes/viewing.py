"""What we read of pods, Jobs and MPIJobs, as small values.

Objects come from the API as plain JSON of any version, through watches that may be old: every field
may be missing. What is missing or is not what it should be is empty here, and never an error.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

BENCHMARK: Final = "benchmark"  #: the container of the unit itself
RECORDER: Final = "recorder"  #: the sidecar that keeps the journal
FETCH: Final = "fetch"  #: brings data, code and files before the others begin

_QUEUE: Final = "kueue.x-k8s.io/queue-name"
_GRACE: Final = timedelta(days=365)  #: no pod is given more time to end; guards against nonsense


class Phase(enum.StrEnum):
    """Of a container. Empty: its node has not said anything of it."""

    UNKNOWN = ""
    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """One condition of an object."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    at: datetime | None = None  #: when its status changed last


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Termination:
    """How a container ended."""

    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    message: str = ""  #: of the container runtime, or what the program left as its last words
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ContainerView:
    """One container of a pod, as its node tells of it."""

    name: str
    image: str = ""  #: as the pod asks for it
    phase: Phase = Phase.UNKNOWN
    reason: str = ""  #: why it waits
    message: str = ""
    started_at: datetime | None = None  #: of one that runs
    ended: Termination | None = None  #: of one that is over
    ended_before: Termination | None = None  #: of one that was started again
    restarts: int = 0
    is_ready: bool = False
    is_started: bool = False
    is_sidecar: bool = False  #: whether those behind it may begin while it runs


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Asks:
    """What a pod asks of the node that takes it."""

    resources: tuple[tuple[str, str], ...] = ()  #: of the unit itself: name, quantity
    labels: tuple[str, ...] = ()  #: node selector and required affinity, each in a few words
    gates: tuple[str, ...] = ()  #: what must happen before the scheduler looks at it

    def amount(self, resource: str) -> str:
        """How much of a resource it asks for; empty if it does not say."""
        return dict(self.resources).get(resource, "")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PodView:
    """One pod."""

    name: str = ""
    uid: str = ""
    node: str = ""
    phase: str = ""
    reason: str = ""
    message: str = ""
    created_at: datetime | None = None
    deleting_since: datetime | None = None  #: when somebody asked for that
    conditions: tuple[Condition, ...] = ()
    containers: tuple[ContainerView, ...] = ()  #: in the order in which they begin
    nominated_node: str = ""  #: where others are being put off to make room for it
    asks: Asks = dataclasses.field(default_factory=Asks)

    def container(self, name: str) -> ContainerView:
        """The one of this name; without a word about it, one of which nothing is known."""
        found = (each for each in self.containers if each.name == name)
        return next(found, ContainerView(name=name))

    def has(self, name: str) -> bool:
        """Whether it has a container of this name."""
        return any(each.name == name for each in self.containers)

    def condition(self, kind: str) -> Condition | None:
        """Its condition of this type."""
        return _of_type(self.conditions, kind)

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs any more, for good."""
        return self.phase in ("Failed", "Succeeded")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class JobView:
    """The Job or MPIJob that makes the pods of units."""

    kind: str = "Job"  #: or ``MPIJob``
    name: str = ""
    uid: str = ""
    created_at: datetime | None = None
    deleting_since: datetime | None = None
    is_suspended: bool = False
    queue: str = ""  #: of Kueue, that may suspend it
    makes_many: bool = False  #: whether other units have their pods from it too
    conditions: tuple[Condition, ...] = ()
    active: int = 0
    ready: int = 0
    failed: int = 0
    succeeded: int = 0

    def condition(self, *kinds: str) -> Condition | None:
        """The first of these conditions that holds."""
        found = (_of_type(self.conditions, kind) for kind in kinds)
        return next((one for one in found if one is not None and one.status == "True"), None)

    @property
    def failure(self) -> Condition | None:
        """Why it has failed or is about to, where it has."""
        return self.condition("Failed", "FailureTarget")

    @property
    def is_complete(self) -> bool:
        """Whether it has ended well. An MPIJob calls that ``Succeeded``."""
        return self.condition("Complete", "Succeeded") is not None


def pod_view(obj: Mapping[str, Any]) -> PodView:
    """What we read of a pod."""
    metadata, spec, status = _parts(obj)
    return PodView(
        name=text(metadata.get("name")),
        uid=text(metadata.get("uid")),
        node=text(spec.get("nodeName")),
        phase=text(status.get("phase")),
        reason=text(status.get("reason")),
        message=text(status.get("message")),
        created_at=moment(metadata.get("creationTimestamp")),
        deleting_since=_deleting_since(metadata),
        conditions=_conditions(status),
        containers=(
            *_containers(spec.get("initContainers"), status.get("initContainerStatuses")),
            *_containers(spec.get("containers"), status.get("containerStatuses")),
        ),
        nominated_node=text(status.get("nominatedNodeName")),
        asks=_asks(spec),
    )


def job_view(obj: Mapping[str, Any]) -> JobView:
    """What we read of a Job."""
    metadata, spec, status = _parts(obj)
    return JobView(
        kind="Job",
        name=text(metadata.get("name")),
        uid=text(metadata.get("uid")),
        created_at=moment(metadata.get("creationTimestamp")),
        deleting_since=_deleting_since(metadata),
        is_suspended=spec.get("suspend") is True,
        queue=text(_mapping(metadata.get("labels")).get(_QUEUE)),
        makes_many=(number(spec.get("completions")) or 1) > 1,
        conditions=_conditions(status),
        active=number(status.get("active")) or 0,
        ready=number(status.get("ready")) or 0,
        failed=number(status.get("failed")) or 0,
        succeeded=number(status.get("succeeded")) or 0,
    )


def mpi_job_view(obj: Mapping[str, Any]) -> JobView:
    """What we read of an MPIJob, whose pods are counted by kind."""
    _, spec, status = _parts(obj)
    counts = [_mapping(one) for one in _mapping(status.get("replicaStatuses")).values()]
    return dataclasses.replace(
        job_view(obj),
        kind="MPIJob",
        makes_many=True,
        is_suspended=_mapping(spec.get("runPolicy")).get("suspend") is True,
        active=sum(number(one.get("active")) or 0 for one in counts),
        failed=sum(number(one.get("failed")) or 0 for one in counts),
        succeeded=sum(number(one.get("succeeded")) or 0 for one in counts),
    )


def text(value: object) -> str:
    """A text, or an empty one."""
    return value if isinstance(value, str) else ""


def number(value: object) -> int | None:
    """A whole number, or none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def moment(value: object) -> datetime | None:
    """A time as the API writes it, ``2024-01-31T10:00:00Z``, or none."""
    try:
        read = datetime.fromisoformat(value) if isinstance(value, str) else value
        if not isinstance(read, datetime):
            return None
        return read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _parts(obj: object) -> tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]:
    whole = _mapping(obj)
    return (
        _mapping(whole.get("metadata")),
        _mapping(whole.get("spec")),
        _mapping(whole.get("status")),
    )


def _deleting_since(metadata: Mapping[str, Any]) -> datetime | None:
    """When somebody asked to delete it: what the API writes down is when patience ends."""
    until = moment(metadata.get("deletionTimestamp"))
    patience = number(metadata.get("deletionGracePeriodSeconds")) or 0
    if until is None or not 0 < patience <= _GRACE.total_seconds():
        return until
    try:
        return until - timedelta(seconds=patience)
    except OverflowError:
        return until


def _conditions(status: Mapping[str, Any]) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            type=text(one.get("type")),
            status=text(one.get("status")),
            reason=text(one.get("reason")),
            message=text(one.get("message")),
            at=moment(one.get("lastTransitionTime")),
        )
        for one in _mappings(status.get("conditions"))
    )


def _containers(specs: object, statuses: object) -> tuple[ContainerView, ...]:
    known = {text(one.get("name")): one for one in _mappings(statuses)}
    wanted = {text(one.get("name")): one for one in _mappings(specs)}
    names = dict.fromkeys((*wanted, *known))
    return tuple(_container(name, wanted.get(name, {}), known.get(name, {})) for name in names)


def _container(name: str, spec: Mapping[str, Any], status: Mapping[str, Any]) -> ContainerView:
    state = _mapping(status.get("state"))
    phase = next((each for each in Phase if each and each.value in state), Phase.UNKNOWN)
    now = _mapping(state.get(phase.value))
    over = phase is Phase.TERMINATED
    before = _mapping(_mapping(status.get("lastState")).get("terminated"))
    return ContainerView(
        name=name,
        image=text(spec.get("image")) or text(status.get("image")),
        phase=phase,
        reason=text(now.get("reason")),
        message=text(now.get("message")),
        started_at=moment(now.get("startedAt")),
        ended=_termination(now) if over else None,
        ended_before=_termination(before) if before else None,
        restarts=number(status.get("restartCount")) or 0,
        is_ready=status.get("ready") is True,
        is_started=status.get("started") is True,
        is_sidecar=spec.get("restartPolicy") == "Always",
    )


def _termination(state: Mapping[str, Any]) -> Termination:
    return Termination(
        exit_code=number(state.get("exitCode")),
        signal=number(state.get("signal")) or None,
        reason=text(state.get("reason")),
        message=text(state.get("message")),
        started_at=moment(state.get("startedAt")),
        finished_at=moment(state.get("finishedAt")),
    )


def _asks(spec: Mapping[str, Any]) -> Asks:
    unit = next(
        (one for one in _mappings(spec.get("containers")) if one.get("name") == BENCHMARK), {}
    )
    resources = _mapping(unit.get("resources"))
    amounts = {**_mapping(resources.get("limits")), **_mapping(resources.get("requests"))}
    return Asks(
        resources=tuple((name, str(amount)) for name, amount in amounts.items()),
        labels=(*_selector(spec), *_affinity(spec)),
        gates=tuple(text(one.get("name")) for one in _mappings(spec.get("schedulingGates"))),
    )


def _selector(spec: Mapping[str, Any]) -> tuple[str, ...]:
    chosen = _mapping(spec.get("nodeSelector"))
    return tuple(f"{name}={value}" for name, value in sorted(chosen.items(), key=str))


def _affinity(spec: Mapping[str, Any]) -> tuple[str, ...]:
    affinity = _mapping(_mapping(spec.get("affinity")).get("nodeAffinity"))
    required = _mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    return tuple(
        _expression(one)
        for term in _mappings(required.get("nodeSelectorTerms"))
        for one in _mappings(term.get("matchExpressions"))
    )


def _expression(one: Mapping[str, Any]) -> str:
    values = one.get("values")
    listed = ", ".join(map(str, values)) if isinstance(values, list) else ""
    return f"{text(one.get('key'))} {text(one.get('operator'))} {listed}".strip()


def _of_type(conditions: tuple[Condition, ...], kind: str) -> Condition | None:
    return next((one for one in conditions if one.type == kind), None)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
