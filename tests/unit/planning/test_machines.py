"""Where there are many machines: what an instance type, a zone and ``[kubernetes]`` become."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anubis.adapters.engine.docker.capabilities import DOCKER
from anubis.adapters.engine.kubernetes.capabilities import KUBERNETES
from anubis.adapters.engine.process.capabilities import PROCESS
from anubis.domain import blanks
from anubis.domain import descriptor as model
from anubis.domain.errors import UserError
from anubis.domain.plan import Placement, Plan, Resources, Toleration, Unit
from anubis.ports.engine import Capabilities
from anubis.stages.planning import instances
from anubis.stages.planning.planning import Context, plan

CONTEXT = Context(directory="/here", environment={}, python="python")
SINGLE, HOROVOD = model.Strategy.SINGLE_NODE, model.Strategy.HOROVOD
INFERENCE, PARAMETERS = model.Strategy.INFERENCE, model.Strategy.MXNET_PARAMETER_SERVER


def described(strategy: model.Strategy = SINGLE, **hardware: Any) -> model.Descriptor:
    return model.Descriptor(
        spec_version="0.1.0",
        info=model.Info(description="d", labels={"team": "perf"}),
        hardware=model.Hardware(strategy=strategy, **hardware),
        env=model.Environment(docker_image="image"),
        ml=model.MachineLearning(benchmark_code="run"),
    )


def served(client: dict[str, Any], **hardware: Any) -> model.Descriptor:
    env = model.ServerEnvironment(ports=(1,), start_command="s", docker_image="i")
    server = model.Server(env=env, hardware=model.ServerHardware(**hardware))
    return dataclasses.replace(described(INFERENCE, **client), server=server)


def planned(descriptor: model.Descriptor, engine: Capabilities = KUBERNETES) -> Plan:
    return plan(descriptor, engine, CONTEXT)


def only(descriptor: model.Descriptor, engine: Capabilities = KUBERNETES) -> Unit:
    (unit,) = planned(descriptor, engine).units
    return unit


def obstacles(descriptor: model.Descriptor, engine: Capabilities = KUBERNETES) -> list[str]:
    with pytest.raises(UserError) as caught:
        planned(descriptor, engine)
    return str(caught.value).split("\n")


def test_a_machine_is_asked_for_as_a_whole_by_its_type() -> None:
    unit = only(described(instance_type="p3.8xlarge"))
    found = instances.find("p3.8xlarge")
    assert found is not None
    assert unit.placement == Placement(instance_type="p3.8xlarge")
    assert unit.resources == Resources(
        requested_cpus=found.cpus_for_programs,
        requested_memory_bytes=found.bytes_for_programs,
        gpus=4,
    )


def test_numbers_of_the_descriptor_win_over_the_table() -> None:
    unit = only(described(instance_type="p3.8xlarge", cpus=2.0, memory_bytes=2**30, gpus=1))
    assert unit.resources == Resources(cpus=2.0, memory_bytes=2**30, gpus=1)


def test_no_gpus_can_be_said_of_a_type_that_has_some() -> None:
    assert only(described(instance_type="p3.8xlarge", gpus=0)).resources.gpus == 0


def test_one_number_leaves_the_other_to_the_table() -> None:
    resources = only(described(instance_type="m5.xlarge", cpus=2.0)).resources
    assert (resources.cpus, resources.requested_cpus) == (2.0, None)
    assert resources.memory_bytes is None
    assert resources.requested_memory_bytes


@pytest.mark.parametrize("name", ["", "g99.48xlarge", "p9.large", "my-machine"])
def test_a_type_that_nobody_knows_only_selects_machines(name: str) -> None:
    """The original ended with an error that nobody saw, if it began with g or p."""
    unit = only(described(instance_type=name))
    assert unit.placement == Placement(instance_type=name)
    assert unit.resources == Resources()


@pytest.mark.parametrize("engine", [PROCESS, DOCKER])
@pytest.mark.parametrize("strategy", [SINGLE, HOROVOD, PARAMETERS])
def test_to_an_engine_of_one_machine_a_type_says_nothing(
    engine: Capabilities, strategy: model.Strategy
) -> None:
    asked = {"instance_type": "p3.8xlarge", "availability_zone": "a b", "exclusive": True}
    named = dataclasses.replace(
        described(strategy, **asked), kubernetes=model.Kubernetes(service_account="s")
    )
    assert planned(named, engine) == planned(described(strategy), engine)


@pytest.mark.parametrize(
    ("hardware", "zone", "selector"),
    [
        ({}, "", {}),
        ({"availability_zone": "us-east-1a"}, "us-east-1a", {}),
        ({"aws_zone_id": "use1-az5"}, "", {"topology.k8s.aws/zone-id": "use1-az5"}),
        ({"availability_zone": "us-east-1a", "aws_zone_id": "use1-az5"}, "us-east-1a", {}),
    ],
)
def test_a_zone_is_chosen_by_name_or_else_by_id(
    hardware: dict[str, Any], zone: str, selector: dict[str, str]
) -> None:
    found = only(described(**hardware)).placement
    assert (found.zone, found.node_selector) == (zone, selector)


def test_a_server_is_in_the_zone_of_its_client_unless_it_names_its_own() -> None:
    near = planned(served({"availability_zone": "a", "aws_zone_id": "b"}))
    assert near.unit("server").placement.zone == "a"
    far = planned(served({"availability_zone": "a"}, aws_zone_id="b")).unit("server").placement
    assert (far.zone, far.node_selector) == ("", {"topology.k8s.aws/zone-id": "b"})


def test_server_and_client_have_a_machine_each() -> None:
    made = planned(served({"instance_type": "t3.medium"}, instance_type="p3.2xlarge"))
    assert made.unit("client").placement.instance_type == "t3.medium"
    assert made.unit("client").resources.gpus == 0
    server = made.unit("server")
    assert server.placement.instance_type == "p3.2xlarge"
    assert (server.resources.gpus, server.resources.requested_cpus) == (1, 7.4)


def test_all_that_a_cluster_is_asked_for_reaches_every_unit() -> None:
    wishes = model.Kubernetes(
        node_selector={"pool": "bench"},
        tolerations=(Toleration(key="bench", operator="Exists"),),
        annotations={"a/b": "c"},
        service_account="me",
        image_pull_secrets=("one", "two"),
        priority_class="high",
        runtime_class="nvidia",
    )
    for strategy in (SINGLE, HOROVOD, PARAMETERS, INFERENCE):
        base = served({"exclusive": True}) if strategy is INFERENCE else None
        made = planned(
            dataclasses.replace(base or described(strategy, exclusive=True), kubernetes=wishes)
        )
        placements = (dataclasses.replace(unit.placement, joins_own=False) for unit in made.units)
        assert dict(
            zip((unit.name for unit in made.units), placements, strict=True)
        ) == dict.fromkeys(
            (unit.name for unit in made.units),
            Placement(
                exclusive=True,
                node_selector={"pool": "bench"},
                tolerations=(Toleration(key="bench", operator="Exists"),),
                annotations={"a/b": "c"},
                service_account="me",
                pull_secrets=("one", "two"),
                priority_class="high",
                runtime_class="nvidia",
            ),
        )


@pytest.mark.parametrize("exclusive", [True, False])
def test_what_does_little_joins_its_own_run_where_each_has_a_machine(exclusive: bool) -> None:
    each = model.Distributed(num_instances=2, processes_per_instance=1)
    for strategy in (SINGLE, HOROVOD, PARAMETERS):
        made = planned(described(strategy, exclusive=exclusive, distributed=each))
        alone = {unit.name for unit in made.units if not unit.placement.joins_own}
        workers = {unit.name for unit in made.units if unit.name.startswith("worker-")}
        everyone = {unit.name for unit in made.units}
        assert alone == (workers or everyone if exclusive else everyone)


def test_one_process_for_each_gpu_of_the_type() -> None:
    each = model.Distributed(num_instances=2, processes_per_instance="gpus")
    made = planned(described(HOROVOD, instance_type="p3.8xlarge", distributed=each))
    assert made.unit("launcher").command[:3] == ("mpirun", "-np", "8")
    assert [unit.resources.gpus for unit in made.units] == [4, 4, 0]
    assert made.unit("launcher").resources == Resources()
    hosts = [f"{blanks.host(f'worker-{n}')} slots=4\n" for n in (0, 1)]
    assert made.files["hostfile"] == "".join(hosts)


def test_workers_that_share_a_machine_share_what_its_type_has() -> None:
    each = model.Distributed(num_instances=1, processes_per_instance=4)
    made = planned(described(PARAMETERS, instance_type="p3.8xlarge", distributed=each))
    worker = made.unit("worker-0").resources
    found = instances.find("p3.8xlarge")
    assert found is not None
    assert worker.gpus == 1
    assert worker.requested_cpus == pytest.approx((found.cpus_for_programs or 0) / 4)
    assert worker.requested_memory_bytes == (found.bytes_for_programs or 0) // 4
    assert made.unit("scheduler").resources == Resources()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "or a number of processes"),
        ("m5.large", "the instance type 'm5.large' has none"),
        ("g4ad.xlarge", "has none of NVIDIA, but 1 AMD Radeon Pro V520"),
        ("g99.large", "how many the instance type 'g99.large' has is not known here"),
    ],
)
def test_processes_by_gpus_that_are_not_known_are_refused_with_what_to_do(
    name: str, why: str
) -> None:
    each = model.Distributed(num_instances=2, processes_per_instance="gpus")
    (line,) = obstacles(described(HOROVOD, instance_type=name, distributed=each))
    start = "hardware.distributed.processes_per_instance: found 'gpus' without GPUs, expected"
    assert line.startswith(f"{start} hardware.gpus above zero")
    assert line.endswith(why)


def test_what_no_label_can_hold_is_refused_with_its_field() -> None:
    wrong = {"instance_type": "any machine", "availability_zone": "-a", "aws_zone_id": "é"}
    fields = [line.partition(": ")[0] for line in obstacles(served(wrong, instance_type="a/b"))]
    assert fields == [
        "hardware.instance_type",
        "hardware.availability_zone",
        "hardware.aws_zone_id",
        "server.hardware.instance_type",
    ]


def test_more_than_the_type_has_is_refused_at_once_and_not_after_an_hour() -> None:
    made = described(instance_type="m5.large", cpus=3.0, memory_bytes=9 * 2**30, gpus=1)
    assert obstacles(made) == [
        f"hardware.{field}: the instance type 'm5.large' has no more"
        for field in (
            "cpus: found 3, expected at most 2",
            "memory: found 9 GiB, expected at most 8 GiB",
        )
    ]


def test_limits_of_processes_are_refused_where_they_cannot_be_set() -> None:
    made = served({})
    assert made.server is not None
    server_env = dataclasses.replace(made.server.env, ulimits={"nofile": 1})
    env = dataclasses.replace(made.env, ulimits={"memlock": -1})
    made = dataclasses.replace(
        made, env=env, server=dataclasses.replace(made.server, env=server_env)
    )
    first, second = obstacles(made)
    assert first.startswith("server.env.ulimits: the engine 'kubernetes' cannot set limits")
    assert second.startswith("env.ulimits: the engine 'kubernetes' cannot set limits")
    for engine in (PROCESS, DOCKER):
        assert planned(made, engine).unit("client").resources.ulimits == {"memlock": -1}


def test_the_plan_bears_the_labels_of_the_descriptor() -> None:
    assert planned(described()).labels == {"team": "perf"}


def _is_possible(found: instances.Instance, strategy: model.Strategy, processes: Any) -> bool:
    """Whether there is a GPU for each process, or as many for each of the workers."""
    if processes == "gpus":
        return found.nvidia_gpus > 0
    return strategy is not PARAMETERS or found.nvidia_gpus % processes == 0


@given(
    name=st.sampled_from(sorted(instances.names())),
    strategy=st.sampled_from([SINGLE, HOROVOD, PARAMETERS]),
    processes=st.integers(1, 4) | st.just("gpus"),
)
def test_every_type_can_be_planned_with_every_strategy(
    name: str, strategy: model.Strategy, processes: Any
) -> None:
    """What units ask for together is never more than their machines have; or it is said why not."""
    found = instances.find(name)
    assert found is not None
    size = model.Distributed(num_instances=2, processes_per_instance=processes)
    descriptor = described(strategy, instance_type=name, distributed=size)
    if strategy is not SINGLE and not _is_possible(found, strategy, processes):
        assert "gpus" in obstacles(descriptor)[0]
        return
    made = planned(descriptor)
    machines = 1 if strategy is SINGLE else 2
    asked = [unit.resources for unit in made.units]
    assert sum(one.requested_cpus or 0 for one in asked) < machines * found.vcpus
    assert sum(one.requested_memory_bytes or 0 for one in asked) < machines * found.memory_bytes
    assert sum(one.gpus for one in asked) <= machines * found.nvidia_gpus
