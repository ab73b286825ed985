"""A run is removed only when all of it is gone, also where somebody else holds an object back."""

from __future__ import annotations

import asyncio

import pytest
from tests import kubernetes_engines
from tests.cluster_faults.given import begun, shell

from anubis.domain.errors import NotPossible
from anubis.domain.observation import EndCause
from anubis.ports.engine import Engine

pytestmark = pytest.mark.cluster

HOLD = '{"metadata": {"finalizers": ["example.org/audit"]}}'
LET_GO = '{"metadata": {"finalizers": null}}'


async def _patch(namespace: str, patch: str) -> None:
    words = ("--namespace", namespace, "--type=merge", f"--patch={patch}")
    [job] = [one for one in kubernetes_engines.left(namespace) if one.startswith("Job/")]
    await asyncio.to_thread(kubernetes_engines.kubectl, "patch", job, *words)


async def test_what_a_finalizer_holds_is_named_until_it_is_gone(
    engine: Engine, namespace: str
) -> None:
    case = await begun(engine, namespace, shell("echo here"))
    await _patch(namespace, HOLD)
    try:
        assert (await case.ended()).cause is EndCause.EXITED
        for _ in range(2):  # it is looked for each time
            with pytest.raises(NotPossible, match="a finalizer keeps Job anubis-"):
                await engine.remove(case.run_id)
        assert await engine.started(case.run_id)
    finally:
        await _patch(namespace, LET_GO)
    await engine.remove(case.run_id)
    assert not await engine.started(case.run_id)
