"""What a service would make of a descriptor, as the shape that people and programs are shown."""

from __future__ import annotations

from anubis.client import parsing
from anubis.client.fields import Fields
from anubis.stages.presentation.plan_shapes import (
    DefinitionShape,
    FetchedShape,
    MountShape,
    PlacementShape,
    PlanShape,
    ProbeShape,
    ResourcesShape,
    TolerationShape,
    UnitShape,
)
from anubis.stages.presentation.shapes import demand_shape


def plan(fields: Fields) -> PlanShape:
    """A plan."""
    return PlanShape(
        engine=fields.word("engine"),
        units=[_unit(one) for one in fields.parts("units")],
        demand=demand_shape(parsing.demand(fields.part("demand"))),
        fetches=[_fetch(one) for one in fields.parts("fetches")],
        files=dict(fields.pairs("files")),
        metrics=[_definition(one) for one in fields.parts("metrics")],
    )


def _unit(fields: Fields) -> UnitShape:
    return UnitShape(
        name=fields.word("name"),
        image=fields.maybe_text("image"),
        command=fields.texts("command"),
        arguments=fields.texts("arguments"),
        environment=dict(fields.pairs("environment")),
        directory=fields.maybe_text("directory"),
        script=fields.maybe_text("script"),
        mounts=[_mount(one) for one in fields.parts("mounts")],
        resources=_resources(fields.part("resources")),
        placement=_placement(fields.maybe_part("placement")),
        cpu_affinity=fields.wholes("cpu_affinity"),
        niceness=fields.whole("niceness"),
        ports=fields.wholes("ports"),
        after=fields.texts("after"),
        readiness=_probe(fields.maybe_part("readiness")),
        liveness=_probe(fields.maybe_part("liveness")),
        is_service=fields.flag("is_service"),
        decides=fields.flag("decides"),
    )


def _mount(fields: Fields) -> MountShape:
    return MountShape(
        source=fields.text("source"),
        target=fields.text("target"),
        read_only=fields.flag("read_only"),
    )


def _resources(fields: Fields) -> ResourcesShape:
    ulimits = fields.part("ulimits")
    return ResourcesShape(
        cpus=fields.number("cpus") if fields.has("cpus") else None,
        memory_bytes=fields.maybe_whole("memory_bytes"),
        requested_cpus=fields.number("requested_cpus") if fields.has("requested_cpus") else None,
        requested_memory_bytes=fields.maybe_whole("requested_memory_bytes"),
        gpus=fields.whole("gpus"),
        extended_shm=fields.flag("extended_shm"),
        privileged=fields.flag("privileged"),
        ulimits={name: ulimits.whole(name) for name in ulimits.raw()},
    )


def _placement(fields: Fields | None) -> PlacementShape | None:
    if fields is None:
        return None
    return PlacementShape(
        instance_type=fields.maybe_text("instance_type"),
        zone=fields.maybe_text("zone"),
        exclusive=fields.flag("exclusive"),
        node_selector=dict(fields.pairs("node_selector")),
        tolerations=[_toleration(one) for one in fields.parts("tolerations")],
        annotations=dict(fields.pairs("annotations")),
        service_account=fields.maybe_text("service_account"),
        pull_secrets=fields.texts("pull_secrets"),
        priority_class=fields.maybe_text("priority_class"),
        runtime_class=fields.maybe_text("runtime_class"),
    )


def _toleration(fields: Fields) -> TolerationShape:
    return TolerationShape(
        key=fields.text("key"),
        operator=fields.text("operator"),
        value=fields.text("value"),
        effect=fields.text("effect"),
    )


def _probe(fields: Fields | None) -> ProbeShape | None:
    if fields is None:
        return None
    return ProbeShape(
        kind=fields.word("kind"),
        port=fields.whole("port"),
        path=fields.text("path"),
        initial_delay_seconds=fields.number("initial_delay_seconds"),
        period_seconds=fields.number("period_seconds"),
        timeout_seconds=fields.number("timeout_seconds"),
        success_threshold=fields.whole("success_threshold"),
        failure_threshold=fields.whole("failure_threshold"),
    )


def _fetch(fields: Fields) -> FetchedShape:
    return FetchedShape(
        field=fields.text("field"),
        uri=fields.text("uri"),
        checksum=fields.maybe_text("checksum"),
        unpack=fields.flag("unpack"),
    )


def _definition(fields: Fields) -> DefinitionShape:
    return DefinitionShape(
        name=fields.text("name"),
        units=fields.text("units"),
        pattern=fields.text("pattern"),
        unit=fields.maybe_text("unit"),
    )
