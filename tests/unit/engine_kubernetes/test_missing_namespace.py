"""A namespace that is not there is told to whoever installs Anubis, and is no benchmark's fault."""

from __future__ import annotations

import pathlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from tests import kubernetes_api
from tests.kubernetes_api import Api, refused

from anubis.adapters.clock.system import SystemClock
from anubis.adapters.engine.kubernetes.refusals import Refused
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.bootstrap import clusters, engines
from anubis.domain.plan import Limits, Plan, Unit
from anubis.domain.run import RunId
from anubis.entrypoints.cli.checks import kubernetes
from anubis.settings.model import Settings

MISSING = 'namespaces "ours" not found'


async def _answer(request: web.Request) -> web.StreamResponse:
    if request.path == "/version":
        return web.json_response({"gitVersion": "v1.36.3", "major": "1", "minor": "36"})
    if request.path.endswith("selfsubjectaccessreviews"):
        return web.json_response({"status": {"allowed": True}}, status=201)
    return refused(404, "NotFound", MISSING)


@pytest.fixture
async def settings(tmp_path: pathlib.Path) -> AsyncIterator[Settings]:
    async with Api().serving() as api:
        api.handle = _answer
        path = kubernetes_api.kubeconfig(tmp_path / "config", api.address)
        yield Settings(home=tmp_path, kubeconfig=path)


async def test_doctor_says_that_it_is_not_there(settings: Settings) -> None:
    assert (await clusters.examined(settings)).refusal == MISSING

    finding = await kubernetes.answers(settings)

    assert MISSING in finding.found
    assert "ANUBIS_KUBERNETES_NAMESPACE" in finding.advice


async def test_a_run_waits_for_it_and_has_not_failed(settings: Settings) -> None:
    scripts = MemoryScriptStore(SystemClock())
    unit = Unit(name="benchmark", command=("true",), environment={}, image="train:1")
    async with engines.kubernetes_engine(settings, scripts) as engine:
        with pytest.raises(Refused, match="not found; make the namespace, or"):
            await engine.start(
                RunId("r"), Plan(units=(unit,), metrics=(), limits=Limits(), deciding="benchmark")
            )

        assert await engine.started(RunId("r")) == frozenset()
