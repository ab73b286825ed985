from __future__ import annotations

from datetime import timedelta

from anubis.domain import plan as plans
from anubis.domain.metric import MetricDefinition
from anubis.domain.plan import Limits, Plan, Unit


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
            ),
        ),
        deciding="benchmark",
        limits=Limits(running=timedelta(seconds=1.5), output_bytes=7),
        metrics=(MetricDefinition(name="x", units="s", pattern="x=(.*)", unit="benchmark"),),
    )
    assert plans.from_json(plans.to_json(plan)) == plan
