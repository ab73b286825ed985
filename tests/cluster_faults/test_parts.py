"""Parts of the cluster die under runs. The runs do not notice, or end as what they are."""

from __future__ import annotations

import asyncio

import pytest
from tests.cluster import control
from tests.cluster_faults.given import SECOND, TALKER, begun, shell

from anubis.adapters.engine.kubernetes import standing
from anubis.domain.observation import EndCause
from anubis.domain.plan import Limits
from anubis.ports.engine import Engine
from anubis.testing.contracts.engine import end, output, until_it_speaks

pytestmark = pytest.mark.cluster(alone=True)

COUNTER = "i=0; while [ $i -lt 80 ]; do i=$((i+1)); echo $i; sleep 0.1; done"
COUNTED = b"".join(b"%d\n" % number for number in range(1, 81))


@pytest.mark.parametrize("part", ["kube-apiserver", "kubelet", "kube-controller-manager"])
async def test_a_run_loses_nothing_when_a_part_of_the_cluster_is_killed(
    engine: Engine, namespace: str, part: str
) -> None:
    case = await begun(engine, namespace, shell(COUNTER))
    await until_it_speaks(engine, case.run_id)
    await asyncio.to_thread(_kill_for_a_while, part)
    seen = await case.seen()
    assert (end(seen).cause, end(seen).exit_code) == (EndCause.EXITED, 0)
    assert output(seen) == COUNTED


def _kill_for_a_while(part: str) -> None:
    with control.away(part):
        pass


async def test_a_program_that_ends_while_its_node_is_silent_ends_as_it_did(
    engine: Engine, namespace: str
) -> None:
    case = await begun(engine, namespace, shell("echo here; sleep 3; echo late; exit 3"))
    await until_it_speaks(engine, case.run_id)
    await asyncio.to_thread(control.kill, "kubelet")
    try:
        await asyncio.sleep(4)
    finally:
        await asyncio.to_thread(control.start, "kubelet")
    seen = await case.seen()
    assert (end(seen).cause, end(seen).exit_code) == (EndCause.EXITED, 3)
    assert output(seen) == b"here\nlate\n"


async def test_a_pod_whose_node_died_is_lost_when_the_cluster_gives_it_up(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster deletes pods of a silent node after five minutes; here, that is us."""
    monkeypatch.setattr(standing, "LEAVING", 3 * SECOND)
    case = await begun(engine, namespace, shell(TALKER, Limits(grace=SECOND)))
    await until_it_speaks(engine, case.run_id)
    await asyncio.to_thread(control.kill, "kubelet")
    try:
        await case.kubectl("delete", "pod", await case.pod(), "--wait=false")
        ended = await case.ended()
    finally:
        await asyncio.to_thread(control.start, "kubelet")
    assert ended.cause is EndCause.LOST
    assert ended.message.endswith("has not said since then that it ended")


@pytest.mark.parametrize(
    ("part", "cause", "words"),
    [
        ("kube-scheduler", EndCause.NO_CAPACITY, "the scheduler has not looked at it"),
        ("kube-controller-manager", EndCause.NO_CAPACITY, "the cluster made no pod of its Job"),
        ("kubelet", EndCause.LOST, "waiting for node node1 to begin with it; not done"),
    ],
)
async def test_a_cluster_that_does_nothing_ends_a_start_in_time(
    engine: Engine, namespace: str, part: str, cause: EndCause, words: str
) -> None:
    await asyncio.to_thread(control.kill, part)
    try:
        limits = Limits(capacity=3 * SECOND, starting=3 * SECOND)
        ended = await (await begun(engine, namespace, shell("true", limits))).ended()
    finally:
        await asyncio.to_thread(control.start, part)
    assert ended.cause is cause
    assert ended.message.startswith(words)
