from __future__ import annotations

from datetime import timedelta

from anubis.domain import plan as plans
from anubis.domain.metric import MetricDefinition
from anubis.domain.plan import Limits, Placement, Plan, Resources, Toleration, Unit


def test_a_plan_survives_being_written_down() -> None:
    plan = Plan(
        units=(
            Unit(
                name="benchmark",
                command=("python", "-c", "print('é')"),
                environment={"A": "1"},
                inherited={"PATH": "/bin", "ODD": "line\nbreak \udcff"},
                directory="/somewhere",
                cpu_affinity=(0, 3),
                niceness=5,
                resources=Resources(
                    cpus=1.0, memory_bytes=2, requested_cpus=0.5, requested_memory_bytes=1, gpus=2
                ),
                placement=Placement(
                    instance_type="m5.large",
                    zone="a",
                    exclusive=True,
                    node_selector={"a/b": "c"},
                    tolerations=(Toleration(key="k", operator="Exists"), Toleration(value="v")),
                    annotations={"a": "b"},
                    service_account="me",
                    pull_secrets=("one", "two"),
                    priority_class="high",
                    runtime_class="nvidia",
                ),
            ),
        ),
        deciding="benchmark",
        limits=Limits(
            running=timedelta(seconds=1.5),
            capacity=timedelta(minutes=1),
            pulling=timedelta(minutes=2),
            output_bytes=7,
            concurrency=3,
        ),
        labels={"team": "perf"},
        submitter="ann",
        schedule="018e0000-0000-7000-8000-000000000000",
        metrics=(MetricDefinition(name="x", units="s", pattern="x=(.*)", unit="benchmark"),),
    )
    assert plans.from_json(plans.to_json(plan)) == plan


def test_a_plan_of_an_older_version_is_understood() -> None:
    """A run may be submitted before an upgrade and start after it."""
    plan = Plan(
        units=(Unit(name="benchmark", command=("true",), environment={}),),
        deciding="benchmark",
        limits=Limits(grace=timedelta(seconds=3)),
    )
    older = plans.to_json(plan).replace(',"concurrency":null', "")
    assert "concurrency" not in older
    assert "schedule" not in older
    assert plans.from_json(older) == plan
