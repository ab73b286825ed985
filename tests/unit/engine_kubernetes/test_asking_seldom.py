"""Calls that the engine does not make: they would be paid by every cluster, all the time."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest
from aiohttp import web
from tests import kubernetes_api
from tests.kubernetes_engines import TERMS

from anubis.adapters.engine.kubernetes import kinds, removing
from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.attending import Surroundings
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.engine import KubernetesEngine
from anubis.adapters.engine.kubernetes.following import Watch
from anubis.adapters.engine.kubernetes.pacing import Pace
from anubis.adapters.engine.kubernetes.places import Named, Spec
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.adapters.ssh_keys import openssh
from anubis.domain import identity
from anubis.domain.errors import NotPossible
from anubis.domain.plan import Limits
from anubis.domain.run import RunId
from anubis.testing.clock import NOON, ManualClock


def test_however_many_ask_the_pace_is_the_same() -> None:
    moment = 100.0
    pace = Pace(0.5, lambda: moment)
    assert [pace.may() for _ in range(500)] == [True] + 499 * [False]
    moment = 100.4
    assert not pace.may()
    moment = 100.5
    assert [pace.may() for _ in range(500)] == [True] + 499 * [False]


async def test_a_run_that_is_gone_already_is_not_looked_for_at_the_cluster(tmp_path: Path) -> None:
    """The worker's sweep comes to runs that were removed since it was told of them."""
    run_id = identity.run_id(NOON, secrets.token_bytes(8))
    api = kubernetes_api.Api()

    async def empty(_: web.Request) -> web.StreamResponse:
        metadata = {"resourceVersion": "1"}
        return web.json_response({"metadata": metadata, "items": [], "resources": []})

    api.handle = empty
    async with api.serving():
        access = Access(
            kubeconfig=kubernetes_api.kubeconfig(tmp_path / "kubeconfig", api.address),
            namespace="bench",
        )
        scripts = MemoryScriptStore(ManualClock())
        home = tmp_path / "kubernetes"
        home.mkdir()
        async with KubernetesEngine(
            home, access, lambda: TERMS, scripts=scripts, make_keys=openssh.make
        ) as engine:
            assert await engine.leftovers() == []
            assert engine._looking is not None
            await engine._looking
            before = engine.cluster.calls.copy()
            await engine.remove(run_id)
            assert engine.cluster.calls == before


async def test_a_cluster_that_needs_time_to_delete_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controllers that hold a pod have a queue, and it does not get shorter by that."""
    monkeypatch.setattr(removing, "PATIENCE_SECONDS", 0.1)
    api, going = kubernetes_api.Api(), kubernetes_api.pod("p", 1)
    going["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    going["metadata"] |= {"deletionGracePeriodSeconds": 0}
    hold = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return await kubernetes_api.streamed(request, (), hold=hold)
        return kubernetes_api.listing(1, going)

    api.handle = slow
    job = Named(kind=kinds.JOB, name="anubis-1-benchmark")
    spec = Spec(unit="benchmark", workload=job, objects=(job,), limits=Limits(), asked_at=NOON)
    async with api.serving():
        cluster = Cluster(Access(kubeconfig=kubernetes_api.kubeconfig(tmp_path / "k", api.address)))
        watches = [Watch(cluster, kind, "") for kind in (kinds.POD, kinds.JOB, kinds.MPI_JOB)]
        around = Surroundings(
            cluster=cluster, pods=watches[0], jobs=watches[1], mpi_jobs=watches[2]
        )
        asked: set[Named] = set()
        for _ in range(3):
            with around.pods.subscribe("r1"):
                await around.pods.synced.wait()
                with pytest.raises(NotPossible):
                    await removing.remove(around, "i", RunId("r1"), [spec], asked)
        assert cluster.calls["delete", "Job"] == 1
        assert cluster.calls["delete", "Pod"] == 0
        hold.set()
        await around.pods.close()
        await cluster.close()
