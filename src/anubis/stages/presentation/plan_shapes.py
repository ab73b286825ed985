"""The JSON of plans, for ``anubis plan --json`` and the HTTP API.

What only the engine or the runtime will know is shown in angle brackets. The submitter's own
environment, which processes inherit, is no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TypedDict

from anubis.domain import blanks, dataset
from anubis.domain.demand import Demand
from anubis.domain.metric import MetricDefinition
from anubis.domain.plan import (
    Fetch,
    Mount,
    Placement,
    Plan,
    Probe,
    Resources,
    Toleration,
    Unit,
)
from anubis.stages.presentation.shapes import DemandShape, demand_shape


class MountShape(TypedDict):
    """Something of the machine that a unit sees in its own file system."""

    source: str
    target: str
    read_only: bool


class ResourcesShape(TypedDict):
    """What a unit may use, where the engine can enforce it. None: all.

    What is only requested must be free where it starts; it may use more.
    """

    cpus: float | None
    memory_bytes: int | None
    requested_cpus: float | None
    requested_memory_bytes: int | None
    gpus: int
    extended_shm: bool
    privileged: bool
    ulimits: dict[str, int]


class TolerationShape(TypedDict):
    """A taint of machines that a unit does not mind."""

    key: str
    operator: str
    value: str
    effect: str


class PlacementShape(TypedDict):
    """Where among many machines a unit may run, and as whom. None: as the installation says."""

    instance_type: str | None
    zone: str | None
    exclusive: bool
    node_selector: dict[str, str]
    tolerations: list[TolerationShape]
    annotations: dict[str, str]
    service_account: str | None
    pull_secrets: list[str]
    priority_class: str | None
    runtime_class: str | None


class ProbeShape(TypedDict):
    """A question that a unit must answer, again and again."""

    kind: str
    port: int
    path: str
    initial_delay_seconds: float
    period_seconds: float
    timeout_seconds: float
    success_threshold: int
    failure_threshold: int


class UnitShape(TypedDict):
    """One program. Without a command, it is what the image does by itself; without a placement, it
    runs wherever the engine likes.
    """

    name: str
    image: str | None
    command: list[str]
    arguments: list[str]
    environment: dict[str, str]
    directory: str | None
    script: str | None
    mounts: list[MountShape]
    resources: ResourcesShape
    placement: PlacementShape | None
    cpu_affinity: list[int]
    niceness: int
    ports: list[int]
    after: list[str]
    readiness: ProbeShape | None
    liveness: ProbeShape | None
    is_service: bool
    decides: bool


class FetchedShape(TypedDict):
    """Data that must be here before any unit starts."""

    field: str
    uri: str
    checksum: str | None
    unpack: bool


class DefinitionShape(TypedDict):
    """A metric to be found in the output of a unit; None: of all."""

    name: str
    units: str
    pattern: str
    unit: str | None


class PlanShape(TypedDict):
    """What a run would be made of."""

    engine: str
    units: list[UnitShape]
    demand: DemandShape
    fetches: list[FetchedShape]
    files: dict[str, str]
    metrics: list[DefinitionShape]


def plan_shape(plan: Plan, engine: str, demand: Demand) -> PlanShape:
    """A plan for an engine."""
    return PlanShape(
        engine=engine,
        units=[_unit(unit, decides=unit.name == plan.deciding) for unit in plan.units],
        demand=demand_shape(demand),
        fetches=[_fetch(fetch) for fetch in plan.fetches],
        files=_texts(plan.files),
        metrics=[_definition(metric) for metric in plan.metrics],
    )


def _unit(unit: Unit, *, decides: bool) -> UnitShape:
    return UnitShape(
        name=unit.name,
        image=unit.image,
        command=[blanks.shown(word) for word in unit.command],
        arguments=[blanks.shown(word) for word in unit.arguments],
        environment=_texts(unit.environment),
        directory=unit.directory,
        script=unit.script or None,
        mounts=[_mount(mount) for mount in unit.mounts],
        resources=_resources(unit.resources),
        placement=_placement(unit.placement),
        cpu_affinity=list(unit.cpu_affinity),
        niceness=unit.niceness,
        ports=list(unit.ports),
        after=list(unit.after),
        readiness=_probe(unit.readiness),
        liveness=_probe(unit.liveness),
        is_service=unit.is_service,
        decides=decides,
    )


def _texts(values: Mapping[str, str]) -> dict[str, str]:
    return {name: blanks.shown(text) for name, text in values.items()}


def _mount(mount: Mount) -> MountShape:
    source = blanks.shown(mount.source)
    return MountShape(source=source, target=mount.target, read_only=mount.read_only)


def _resources(resources: Resources) -> ResourcesShape:
    return ResourcesShape(
        cpus=resources.cpus,
        memory_bytes=resources.memory_bytes,
        requested_cpus=resources.requested_cpus,
        requested_memory_bytes=resources.requested_memory_bytes,
        gpus=resources.gpus,
        extended_shm=resources.extended_shm,
        privileged=resources.privileged,
        ulimits=dict(resources.ulimits),
    )


def _placement(placement: Placement) -> PlacementShape | None:
    if placement == Placement():
        return None
    return PlacementShape(
        instance_type=placement.instance_type or None,
        zone=placement.zone or None,
        exclusive=placement.exclusive,
        node_selector=dict(placement.node_selector),
        tolerations=[_toleration(one) for one in placement.tolerations],
        annotations=dict(placement.annotations),
        service_account=placement.service_account or None,
        pull_secrets=list(placement.pull_secrets),
        priority_class=placement.priority_class or None,
        runtime_class=placement.runtime_class or None,
    )


def _toleration(toleration: Toleration) -> TolerationShape:
    return TolerationShape(
        key=toleration.key,
        operator=str(toleration.operator),
        value=toleration.value,
        effect=str(toleration.effect),
    )


def _probe(probe: Probe | None) -> ProbeShape | None:
    if probe is None:
        return None
    return ProbeShape(
        kind=probe.kind.value,
        port=probe.port,
        path=probe.path,
        initial_delay_seconds=_seconds(probe.initial_delay),
        period_seconds=_seconds(probe.period),
        timeout_seconds=_seconds(probe.timeout),
        success_threshold=probe.success_threshold,
        failure_threshold=probe.failure_threshold,
    )


def _seconds(span: timedelta) -> float:
    return span.total_seconds()


def _fetch(fetch: Fetch) -> FetchedShape:
    return FetchedShape(
        field=fetch.field,
        uri=dataset.shown(fetch.uri),
        checksum=fetch.checksum or None,
        unpack=fetch.unpack,
    )


def _definition(metric: MetricDefinition) -> DefinitionShape:
    return DefinitionShape(
        name=metric.name, units=metric.units, pattern=metric.pattern, unit=metric.unit
    )
