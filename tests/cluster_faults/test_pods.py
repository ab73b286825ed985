"""What happens to pods and Jobs is told as what it is, within its deadline."""

from __future__ import annotations

import json

import pytest
from tests.cluster_faults.given import (
    SECOND,
    STUBBORN,
    TALKER,
    begun,
    shell,
    waits,
    with_gpus,
    with_label,
    with_memory,
)

from anubis.domain.observation import EndCause
from anubis.domain.plan import Limits
from anubis.ports.engine import Engine
from anubis.testing.contracts.engine import end, output, until_it_speaks

pytestmark = pytest.mark.cluster

GIB = 1024**3


async def test_a_deleted_pod_is_lost_to_somebody_and_what_it_said_is_kept(
    engine: Engine, namespace: str
) -> None:
    case = await begun(engine, namespace, shell(TALKER))
    await until_it_speaks(engine, case.run_id)
    pod = await case.pod()
    await case.kubectl("delete", "pod", pod, "--wait=false")
    seen = await case.seen()
    ended = end(seen)
    assert (ended.cause, ended.message) == (EndCause.LOST, f"somebody deleted its pod {pod}")
    assert output(seen) == b"here\n"


async def test_a_pod_deleted_by_force_is_lost(engine: Engine, namespace: str) -> None:
    case = await begun(engine, namespace, shell(TALKER))
    await until_it_speaks(engine, case.run_id)
    pod = await case.pod()
    await case.kubectl("delete", "pod", pod, "--force", "--grace-period=0", "--wait=false")
    ended = await case.ended()
    assert (ended.cause, ended.message) == (EndCause.LOST, f"somebody deleted its pod {pod}")


async def test_a_program_that_stays_when_its_pod_is_deleted_is_made_to_end(
    engine: Engine, namespace: str
) -> None:
    case = await begun(engine, namespace, shell(STUBBORN, Limits(grace=SECOND)))
    await until_it_speaks(engine, case.run_id)
    await case.kubectl("delete", "pod", await case.pod(), "--wait=false")
    ended = await case.ended()
    assert ended.cause is EndCause.LOST
    assert ended.message.startswith("somebody deleted its pod")


async def test_a_deleted_job_is_told_as_such(engine: Engine, namespace: str) -> None:
    case = await begun(engine, namespace, shell(TALKER))
    await until_it_speaks(engine, case.run_id)
    await case.kubectl("delete", "jobs", "-l", case.selector, "--wait=false")
    ended = await case.ended()
    assert ended.cause is EndCause.LOST
    assert ended.message.startswith("somebody deleted its ")
    assert "anubis-" in ended.message


async def test_an_evicted_pod_is_no_failure_of_its_program(engine: Engine, namespace: str) -> None:
    case = await begun(engine, namespace, shell(TALKER))
    await until_it_speaks(engine, case.run_id)
    pod = await case.pod()
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
    await case.kubectl("create", "--raw", path, "-f", "-", text=json.dumps(eviction))
    ended = await case.ended()
    assert ended.cause is EndCause.EVICTED
    assert ended.message.startswith("it was evicted from node ")


async def test_a_pod_deleted_before_its_program_began_is_lost(
    engine: Engine, namespace: str
) -> None:
    case = await begun(engine, namespace, with_gpus(1, Limits()))
    await case.until_it_waits()
    pod = await case.pod()
    await case.kubectl("delete", "pod", pod, "--wait=false")
    ended = await case.ended()
    assert (ended.cause, ended.message) == (EndCause.LOST, f"somebody deleted its pod {pod}")


async def test_a_wrong_image_is_told_in_the_words_of_the_registry(
    engine: Engine, namespace: str
) -> None:
    limits = Limits(pulling=8 * SECOND)
    plan = shell("true", limits, image="registry.invalid/team/nope:1")
    case = await begun(engine, namespace, plan)
    ended = await case.ended()
    assert ended.cause is EndCause.IMAGE_UNAVAILABLE
    assert ended.message.startswith("the image registry.invalid/team/nope:1")
    assert 'Head "https://registry.invalid/v2/team/nope/manifests/1"' in ended.message


async def test_an_image_that_has_no_name_fails_at_once(engine: Engine, namespace: str) -> None:
    case = await begun(engine, namespace, shell("true", image="Team/UPPER:1"))
    ended = await case.ended(60)
    assert ended.cause in (EndCause.IMAGE_UNAVAILABLE, EndCause.NOT_STARTED)
    assert "Team/UPPER:1" in ended.message


async def test_a_gpu_that_nobody_has_is_waited_for_and_then_named(
    engine: Engine, namespace: str
) -> None:
    case = await begun(engine, namespace, with_gpus(1, Limits(capacity=6 * SECOND)))
    seen = await case.seen()
    reason = "no node has 1 nvidia.com/gpu, not even an empty one"
    assert waits(seen)[0].startswith(f"waiting for a node: {reason}")
    ended = end(seen)
    assert ended.cause is EndCause.NO_CAPACITY
    assert ended.message.startswith(reason)


async def test_a_label_that_no_node_has_is_named(engine: Engine, namespace: str) -> None:
    plan = with_label("example.com/rack", "r9", Limits(capacity=3 * SECOND))
    ended = await (await begun(engine, namespace, plan)).ended()
    assert ended.cause is EndCause.NO_CAPACITY
    assert "example.com/rack=r9" in ended.message


async def test_a_full_node_is_waited_for_until_there_is_room(
    engine: Engine, namespace: str
) -> None:
    half = await _more_than_half_of_a_node(engine, namespace)
    first = await begun(engine, namespace, with_memory(TALKER, half))
    await until_it_speaks(engine, first.run_id)
    late = await begun(engine, namespace, with_memory("true", half, Limits(capacity=3 * SECOND)))
    ended = await late.ended()
    assert ended.cause is EndCause.NO_CAPACITY
    assert " memory free" in ended.message
    second = await begun(engine, namespace, with_memory("echo room", half))
    assert " memory free" in await second.until_it_waits()
    await engine.stop(first.run_id, grace=SECOND, cause=EndCause.CANCELED)
    assert (await first.ended()).cause is EndCause.CANCELED
    await engine.remove(first.run_id)
    seen = await second.seen()
    assert (end(seen).cause, end(seen).exit_code) == (EndCause.EXITED, 0)


async def _more_than_half_of_a_node(engine: Engine, namespace: str) -> int:
    case = await begun(engine, namespace, shell("true"))
    nodes = json.loads(await case.kubectl("get", "nodes", "-o", "json"))["items"]
    sizes = [int(one["status"]["allocatable"]["memory"].removesuffix("Ki")) for one in nodes]
    assert (await case.ended()).exit_code == 0
    return max(sizes) * 1024 * 6 // 10


async def test_a_program_that_needs_more_memory_than_it_has_ran_out_of_it(
    engine: Engine, namespace: str
) -> None:
    plan = with_memory("echo here; exec tail /dev/zero", 32 * 1024**2)
    seen = await (await begun(engine, namespace, plan)).seen()
    assert (end(seen).cause, output(seen)) == (EndCause.OUT_OF_MEMORY, b"here\n")
