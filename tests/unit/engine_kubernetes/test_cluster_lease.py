"""Who leads: candidates that die, are cut off, and meet servers that answer late or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pathlib
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web
from tests import kubernetes_api
from tests.kubernetes_api import Api, refused

from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.lease import Leadership, Terms
from anubis.adapters.engine.kubernetes.refusals import NotPermitted

QUICK = Terms(duration=1.0, deadline=0.6, retry=0.05)


class Leases:
    """One lease, written as a cluster writes: only over the version that was read."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.trouble: Callable[[web.Request], float | None] = lambda _: 0.0
        """How long an answer takes; None: the write is done, and the answer lost."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        delay = self.trouble(request)
        if delay:
            await asyncio.sleep(delay)
        if delay is not None and delay > 0.2:
            return refused(503, "ServiceUnavailable", "not now")
        answer = self.answer(request, await request.read())
        if delay is None:
            return refused(504, "Timeout", "it took too long")
        return answer

    def answer(self, request: web.Request, body: bytes) -> web.StreamResponse:
        if request.method == "POST":
            if self.lease is not None:
                return refused(409, "AlreadyExists", "it is there")
            return self.write(json.loads(body))
        if self.lease is None:
            return refused(404, "NotFound", "no lease")
        if request.method == "GET":
            return web.json_response(self.lease)
        wanted = json.loads(body)
        if wanted["metadata"]["resourceVersion"] != str(self.version):
            return refused(409, "Conflict", "the object has been modified")
        return self.write(wanted)

    def write(self, lease: dict[str, Any]) -> web.StreamResponse:
        self.version += 1
        lease["metadata"]["resourceVersion"] = str(self.version)
        self.lease = lease
        return web.json_response(lease)

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with Api().serving() as serving:
        yield serving


@pytest.fixture
def leases(api: Api) -> Leases:
    made = Leases()
    api.handle = made.handle
    return made


@pytest.fixture
async def cluster(api: Api, tmp_path: pathlib.Path) -> AsyncIterator[Cluster]:
    path = kubernetes_api.kubeconfig(tmp_path / "config", api.address)
    made = Cluster(Access(kubeconfig=path))
    yield made
    await made.close()


def candidate(cluster: Cluster, identity: str) -> Leadership:
    return Leadership(cluster, "anubis", identity, terms=QUICK)


async def test_a_leader_renews_and_gives_back(leases: Leases, cluster: Cluster) -> None:
    async with candidate(cluster, "one") as one:
        assert one.is_held
        first = leases.version
        async with asyncio.timeout(20):
            while leases.version < first + 3:
                await asyncio.sleep(0.01)
        assert leases.spec["holderIdentity"] == "one"
        assert leases.spec["leaseTransitions"] == 1
        assert not one.lost.is_set()
    assert one.lost.is_set()
    assert not one.is_held
    assert leases.spec["holderIdentity"] == ""

    async with candidate(cluster, "two") as two:
        assert two.is_held
        assert leases.spec["holderIdentity"] == "two"


async def test_the_second_waits_until_the_first_has_been_silent_for_long_enough(
    leases: Leases, cluster: Cluster
) -> None:
    one, two = candidate(cluster, "one"), candidate(cluster, "two")
    await one.__aenter__()
    waiting = asyncio.create_task(two.__aenter__())
    await asyncio.sleep(0.3)
    assert not waiting.done()
    assert two.holder == "one"

    assert one._task is not None
    one._task.cancel()  # as a process that was stopped: it writes no more, and knows nothing
    await asyncio.wait({one._task})
    async with asyncio.timeout(20):
        await waiting
    assert not one.is_held
    assert two.is_held
    await two.__aexit__(None, None, None)


async def test_a_leader_that_cannot_renew_knows_that_it_has_lost(
    leases: Leases, cluster: Cluster
) -> None:
    async with candidate(cluster, "one") as one:
        leases.trouble = lambda _: 0.21
        async with asyncio.timeout(20):
            await one.lost.wait()
        assert not one.is_held


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_a_leader_whose_lease_was_taken_knows_at_once(
    leases: Leases, cluster: Cluster, *, is_deleted: bool
) -> None:
    async with candidate(cluster, "one") as one:
        if is_deleted:
            leases.lease = None
        else:
            leases.write({**leases.lease, "spec": {**leases.spec, "holderIdentity": "two"}})  # type: ignore[dict-item]
        async with asyncio.timeout(20):
            await one.lost.wait()
        assert not one.is_held
        assert one.holder == ("" if is_deleted else "two")
    if not is_deleted:
        assert leases.spec["holderIdentity"] == "two"  # it was not ours to give back


async def test_an_answer_that_was_lost_costs_no_leadership(
    leases: Leases, cluster: Cluster
) -> None:
    async with candidate(cluster, "one") as one:
        left = [None]
        leases.trouble = lambda request: left.pop() if left and request.method == "PUT" else 0.0
        before = leases.version
        async with asyncio.timeout(20):
            while leases.version < before + 3:
                await asyncio.sleep(0.01)
        assert one.is_held


async def test_who_may_not_write_leases_is_told(api: Api, cluster: Cluster) -> None:
    words = 'leases.coordination.k8s.io is forbidden: User "a" cannot get resource "leases"'

    async def handle(request: web.Request) -> web.StreamResponse:
        return refused(403, "Forbidden", words)

    api.handle = handle
    with pytest.raises(NotPermitted, match="get leases"):
        await candidate(cluster, "one").__aenter__()


async def test_of_many_candidates_in_bad_weather_never_two_believe_that_they_lead(
    leases: Leases, cluster: Cluster
) -> None:
    weather = random.Random(5)
    leases.trouble = lambda _: weather.choice([0.0, 0.0, 0.0, 0.01, 0.05, 0.25, None])
    candidates: list[Leadership] = []
    led: set[str] = set()

    async def lead(identity: str) -> None:
        for turn in range(1000):
            one = candidate(cluster, f"{identity}-{turn}")
            candidates.append(one)
            async with one:
                led.add(identity)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await one.lost.wait()
            candidates.remove(one)

    async def look() -> None:
        while len(led) < 3:
            assert sum(one.is_held for one in candidates) <= 1
            await asyncio.sleep(0)

    async with asyncio.timeout(60):
        tasks = [asyncio.create_task(lead(name)) for name in "abc"]
        await look()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
