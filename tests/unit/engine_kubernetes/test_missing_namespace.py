"""A namespace that is not there, or does not take our pods, is told to whoever installs Anubis, and
is no benchmark's fault.
"""

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
async def api() -> AsyncIterator[Api]:
    async with Api().serving() as api:
        api.handle = _answer
        yield api


@pytest.fixture
def settings(tmp_path: pathlib.Path, api: Api) -> Settings:
    path = kubernetes_api.kubeconfig(tmp_path / "config", api.address)
    return Settings(home=tmp_path, kubeconfig=path)


async def test_doctor_says_that_it_is_not_there(settings: Settings) -> None:
    assert (await clusters.examined(settings)).refusal == MISSING

    finding = await kubernetes.answers(settings)

    assert MISSING in finding.found
    assert "ANUBIS_KUBERNETES_NAMESPACE" in finding.advice


SECURITY = (
    'pods "anubis-doctor" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes'
    ' (volume "output")'
)


@pytest.mark.parametrize(
    ("said", "is_told"),
    [
        (SECURITY, True),
        ('pods is forbidden: User "a" cannot patch resource "pods" in API group ""', False),
        ('pods "anubis-doctor" is forbidden: exceeded quota: small, requested: cpu=10m', False),
    ],
)
async def test_doctor_says_that_pods_of_ours_are_not_wanted_there(
    settings: Settings, api: Api, said: str, *, is_told: bool
) -> None:
    """Who may not ask, and a quota that is full at the moment, say nothing about that."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if "/pods/" in request.path:
            return refused(403, "Forbidden", said)
        if "/secrets/" in request.path:
            return web.json_response({"metadata": {"name": "anubis-doctor"}})
        return await _answer(request)

    api.handle = answer
    finding = await kubernetes.answers(settings)
    assert ("violates PodSecurity" in finding.found) is is_told
    assert ("enforce=privileged" in finding.advice) is is_told


async def test_a_run_waits_for_it_and_has_not_failed(settings: Settings) -> None:
    scripts = MemoryScriptStore(SystemClock())
    unit = Unit(name="benchmark", command=("true",), environment={}, image="train:1")
    async with engines.kubernetes_engine(settings, scripts) as engine:
        with pytest.raises(Refused, match="not found; make the namespace, or"):
            await engine.start(
                RunId("r"), Plan(units=(unit,), metrics=(), limits=Limits(), deciding="benchmark")
            )

        assert await engine.started(RunId("r")) == frozenset()
