"""A run is removed only when all of it is gone, also where somebody else holds an object back."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests import kubernetes_engines
from tests.cluster_faults.given import Case, begun, shell

from anubis.domain.errors import NotPossible
from anubis.domain.observation import EndCause
from anubis.ports.engine import Engine
from anubis.testing.contracts.engine import until_it_speaks

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


async def _again(case: Case, pod: str) -> str:
    """A second pod like this one, as a controller makes it."""
    labels, spec = (json.loads(pod)[part] for part in ("metadata", "spec"))
    like = {"name": f"{labels['name']}-late", "labels": labels["labels"]}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": like, "spec": spec}
    return await case.kubectl("create", "--filename=-", text=json.dumps(made))


async def test_a_pod_that_is_made_after_its_run_was_removed_does_not_stay(
    engine: Engine, namespace: str
) -> None:
    """As by an operator that had not heard yet that its job was deleted."""
    case = await begun(engine, namespace, shell("echo here; sleep 1"))
    await until_it_speaks(engine, case.run_id)
    pod = await case.kubectl("get", "pod", await case.pod(), "--output=json")
    await case.ended()
    await engine.remove(case.run_id)
    assert list(await engine.leftovers()) == []
    await _again(case, pod)
    async with asyncio.timeout(60):
        while list(await engine.leftovers()) != [case.run_id]:
            await asyncio.sleep(0.1)
    await engine.remove(case.run_id)
    assert list(await engine.leftovers()) == kubernetes_engines.left(namespace) == []
