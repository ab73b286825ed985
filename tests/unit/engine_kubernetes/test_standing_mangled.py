"""Objects of any shape are read: what is missing or wrong never raises."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engine_kubernetes import recordings

from anubis.adapters.engine.kubernetes import explaining, standing
from anubis.adapters.engine.kubernetes.stances import Seen, Waiting
from anubis.domain.plan import Limits

NONSENSE: tuple[Any, ...] = (
    None,
    "",
    "x",
    0,
    -1,
    10**30,
    3.5,
    True,
    [],
    {},
    [None],
    [{}],
    {"a": 1},
    "0001-01-01T00:00:00+23:00",
    "9999-12-31T23:59:59Z",
    "{" * 2000,
)


def mangled(value: Any, chance: random.Random, rate: float) -> Any:
    """The same, with some parts missing and some replaced by nonsense."""
    if chance.random() < rate:
        return chance.choice(NONSENSE)
    if isinstance(value, dict):
        kept = {key: mangled(each, chance, rate) for key, each in value.items()}
        return {key: each for key, each in kept.items() if chance.random() > rate}
    if isinstance(value, list):
        return [mangled(each, chance, rate) for each in value]
    return value


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(recordings.NAMES), st.integers(0, 10**9), st.sampled_from([0.02, 0.1, 0.4]))
def test_a_mangled_object_never_raises(name: str, seed: int, rate: float) -> None:
    content = recordings.raw(name)
    chance = random.Random(seed)
    pods = [standing.pod_view(mangled(pod, chance, rate)) for pod in content["pods"]]
    job = standing.job_view(mangled(content["workload"], chance, rate))
    mpi = standing.mpi_job_view(mangled(content["workload"], chance, rate))
    mangled_events = [mangled(event, chance, rate) for event in content["events"]]
    events = [explaining.happening(one) for one in mangled_events if isinstance(one, dict)]
    now = recordings.moment(name).at
    before = Seen(created_at=now, workload=recordings.WORKLOAD)
    for workload in (job, mpi, None):
        seen = standing.remembered(before, pods, workload)
        found = standing.stand(pods, workload, seen, now, Limits())
        explained = explaining.explained(found, events, now)
        assert type(explained) is type(found)
        assert len(getattr(explained, "message", "")) < 6000
        if isinstance(found, Waiting):
            assert found.message


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300), st.text(max_size=300))
def test_whatever_a_scheduler_or_a_registry_says_is_one_line(one: str, two: str) -> None:
    content = recordings.raw("unscheduled_gpu")
    for condition in content["pods"][0]["status"]["conditions"]:
        condition["message"] = one
    assert "\n" not in str(getattr(recordings.moment_of(content).stand(), "message", ""))
    content = recordings.raw("image_denied")
    for container in content["pods"][0]["status"]["containerStatuses"]:
        container["state"]["waiting"]["message"] = two
    assert "\n" not in str(getattr(recordings.moment_of(content).stand(), "message", ""))
