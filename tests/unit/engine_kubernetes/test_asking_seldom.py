"""Calls that the engine does not make: they would be paid by every cluster, all the time."""

from __future__ import annotations

import secrets
from pathlib import Path

from aiohttp import web
from tests import kubernetes_api
from tests.kubernetes_engines import TERMS

from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.engine import KubernetesEngine
from anubis.adapters.engine.kubernetes.pacing import Pace
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.adapters.ssh_keys import openssh
from anubis.domain import identity
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
