"""A real API server takes what we tell it, and real containers get the very texts of their plan."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import real_parts
from tests.cluster import control
from tests.unit.engine_kubernetes import manifest_cases as cases

from anubis.adapters.engine.kubernetes import kinds, naming
from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.manifests import texts
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(str(path.relative_to(GOLDEN).with_suffix("")) for path in GOLDEN.rglob("*.yaml"))
OF_OPERATOR = "sample-mpi-operator"
NOWHERE: Manifest = {"spec": {"nodeSelector": {"anubis.dev/there-is": "no-such-node"}}}
"""Pods that are made, and never run."""

NASTY = ("$", "$$", "$(HOME)", "$$(HOME)", "a$$$(HOME)b", "$(", "${HOME}", "$()", "%s\\n'\"` é")


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """A namespace of our own on the test cluster."""
    namespace = f"manifests-{secrets.token_hex(4)}"
    found = Cluster(Access(kubeconfig=control.kubeconfig(), namespace=namespace))
    made: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": namespace},
    }
    await found.apply(made)
    try:
        yield found
    finally:
        await found.delete(kinds.NAMESPACE, namespace)
        await found.close()


@pytest.mark.cluster
@pytest.mark.parametrize("name", [name for name in FILES if name != OF_OPERATOR])
async def test_a_real_api_server_takes_what_we_tell_it(cluster: Cluster, name: str) -> None:
    await take(cluster, name)


@pytest.mark.cluster(alone=True)
async def test_the_definition_of_the_mpi_operator_takes_what_we_tell_it(cluster: Cluster) -> None:
    with control.mpi_operator():
        await take(cluster, OF_OPERATOR)


async def take(cluster: Cluster, name: str) -> None:
    """Have the cluster check all objects of a golden file."""
    for one in yaml.safe_load_all((GOLDEN / f"{name}.yaml").read_text("utf-8")):
        if "obstacles" not in one:
            one["metadata"]["namespace"] = cluster.namespace
            await cluster.apply(one, dry_run=True)


@pytest.mark.cluster
async def test_pods_of_an_indexed_job_tell_which_unit_they_are(cluster: Cluster) -> None:
    assert await units_made(cluster, has_mpi_operator=False) == {"worker-0", "worker-1"}


@pytest.mark.cluster(alone=True)
async def test_pods_of_an_mpi_job_tell_which_unit_they_are(cluster: Cluster) -> None:
    with control.mpi_operator():
        assert await units_made(cluster, has_mpi_operator=True) == {"worker-0", "worker-1"}


async def units_made(cluster: Cluster, *, has_mpi_operator: bool) -> set[str]:
    """The units whose pods the cluster makes when a worker is asked for, as one of a schedule."""
    plan = cases.descriptor_plan(cases.DESCRIPTORS["sample-mpi"])
    plan = dataclasses.replace(plan, schedule=cases.SCHEDULE)
    site = dataclasses.replace(
        cases.SITE,
        namespace=cluster.namespace,
        has_mpi_operator=has_mpi_operator,
        overlay=NOWHERE,
    )
    made = cases.objects(plan, site)
    for one in made.for_unit("worker-0"):
        await cluster.apply(one)
    fired = f"{made.names.selector},{naming.PARENT}={cases.SCHEDULE}"
    async with asyncio.timeout(60):
        while len(pods := (await cluster.list(kinds.POD, fired)).items) < 2:
            await asyncio.sleep(0.1)
    for unit in ("worker-0", "worker-1"):
        assert len((await cluster.list(kinds.POD, made.pod_of(unit))).items) == 1
    told = [naming.unit_of(pod["metadata"]["labels"]) for pod in pods]
    return {one[1] for one in told if one is not None}


@pytest.mark.cluster
async def test_a_real_container_gets_the_very_texts_of_its_plan(cluster: Cluster) -> None:
    words = [texts.verbatim(text) for text in NASTY]
    variables = {f"V{number}": word for number, word in enumerate(words)}
    script = 'printf "<%s>" "$@" ' + " ".join(f'"$V{number}"' for number in range(len(NASTY)))
    container = {
        "name": "benchmark",
        "image": real_parts.busybox(),
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", texts.verbatim(script), "sh", *words],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
    }
    await cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "texts", "namespace": cluster.namespace},
            "spec": {"restartPolicy": "Never", "containers": [container]},
        }
    )
    assert await ended(cluster, "texts") == "Succeeded"
    found = (await cluster.log("texts", "benchmark", 10_000)).decode()
    assert found == "".join(f"<{text}>" for text in (*NASTY, *NASTY))


async def ended(cluster: Cluster, pod: str) -> str:
    """How a pod ended."""
    async with asyncio.timeout(120):
        while True:
            found: Any = await cluster.get(kinds.POD, pod)
            if found["status"].get("phase") in {"Succeeded", "Failed"}:
                return str(found["status"]["phase"])
            await asyncio.sleep(0.2)
