"""A real API server takes what we tell it, and real containers get the very texts of their plan."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import real_parts

from anubis.adapters.engine.kubernetes import kinds
from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.manifests import mpi_job, texts

pytestmark = pytest.mark.cluster

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(path.stem for path in GOLDEN.glob("*.yaml"))
KUBECONFIG = os.environ.get(
    "ANUBIS_TEST_KUBECONFIG", str(Path("~/.cache/anubis-cluster/kubeconfig").expanduser())
)
NASTY = ("$", "$$", "$(HOME)", "$$(HOME)", "a$$$(HOME)b", "$(", "${HOME}", "$()", "%s\\n'\"` é")


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """A namespace of our own on the test cluster."""
    real_parts.need(Path(KUBECONFIG).is_file(), "there is no test cluster: make cluster")
    namespace = f"manifests-{secrets.token_hex(4)}"
    found = Cluster(Access(kubeconfig=KUBECONFIG, namespace=namespace))
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


@pytest.mark.parametrize("name", FILES)
async def test_a_real_api_server_takes_what_we_tell_it(cluster: Cluster, name: str) -> None:
    for one in yaml.safe_load_all((GOLDEN / f"{name}.yaml").read_text("utf-8")):
        if "obstacles" in one:
            continue
        if one["kind"] == "MPIJob":
            group, plural = mpi_job.API_VERSION, kinds.MPI_JOB.plural
            real_parts.need(await cluster.has_api(group, plural), "the cluster has no MPI operator")
        one["metadata"]["namespace"] = cluster.namespace
        await cluster.apply(one, dry_run=True)


async def test_a_real_container_gets_the_very_texts_of_its_plan(cluster: Cluster) -> None:
    words = [texts.verbatim(text) for text in NASTY]
    variables = {f"V{number}": word for number, word in enumerate(words)}
    script = 'printf "<%s>" "$@" ' + " ".join(f'"$V{number}"' for number in range(len(NASTY)))
    container = {
        "name": "benchmark",
        "image": "anubis-test/busybox:latest",
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
