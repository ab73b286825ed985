"""Kubernetes engines for tests, each in a namespace of its own, which leave nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

from tests import helm_charts
from tests.kubectl import Space

from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.composing import Terms
from anubis.adapters.engine.kubernetes.engine import KubernetesEngine
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.adapters.ssh_keys import openssh
from anubis.testing.clock import ManualClock

KUBECONFIG = os.environ.get("ANUBIS_TEST_KUBECONFIG") or str(
    Path("~/.cache/anubis-cluster/kubeconfig").expanduser()
)
OUR_IMAGE = "anubis:test"

TERMS = Terms(
    image=OUR_IMAGE,
    pod_logs="/var/log/pods",
    datasets="none",
    fetch_secret="",
    drain=timedelta(minutes=5),
    domain="cluster.local",
    pull_policy="IfNotPresent",
)


def kubectl(*words: str, text: str | None = None, checked: bool = True) -> str:
    """What kubectl answers."""
    command = ["kubectl", f"--kubeconfig={KUBECONFIG}", *words]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    assert not checked or done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def namespace() -> Iterator[str]:
    """A namespace that is deleted with all that is in it."""
    name = f"anubis-test-{secrets.token_hex(4)}"
    kubectl("create", "namespace", name)
    try:
        yield name
    finally:
        # A pod waits for whoever fetches its output; here nobody will.
        words = ("-n", name, "--all", "--force", "--grace-period=0", "--wait=false")
        kubectl("delete", "jobs", *words, checked=False)
        kubectl("delete", "pods", *words, checked=False)
        kubectl("delete", "namespace", name, "--wait=false", checked=False)


def account_of_the_chart(name: str, folder: Path) -> str:
    """A kubeconfig with the rights that our chart gives to the service in a namespace, and no
    others.
    """
    kinds = ("ServiceAccount", "Role", "RoleBinding")
    made = [one for one in helm_charts.rendered() if one["kind"] in kinds]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
    listed = listed.replace(f'"{helm_charts.NAMESPACE}"', f'"{name}"')
    space = Space(name=name, kubeconfig=Path(KUBECONFIG))
    space.ask("create", "--filename=-", stdin=listed)
    service = next(one for one in made if one["kind"] == "RoleBinding")["subjects"][0]["name"]
    return str(space.as_account(service, folder).kubeconfig)


def engine(
    home: Path, name: str, terms: Terms = TERMS, kubeconfig: str = KUBECONFIG
) -> KubernetesEngine:
    """An engine of a home in a namespace."""
    return KubernetesEngine(
        home / "kubernetes",
        Access(kubeconfig=kubeconfig, namespace=name),
        lambda: terms,
        scripts=MemoryScriptStore(ManualClock()),
        make_keys=openssh.make,
    )


@contextlib.asynccontextmanager
async def opened(
    home: Path, name: str, terms: Terms = TERMS, kubeconfig: str = KUBECONFIG
) -> AsyncIterator[KubernetesEngine]:
    """An engine. At its end, all that its installation has is deleted, and looked for."""
    async with engine(home, name, terms, kubeconfig) as found:
        try:
            yield found
        finally:
            for run_id in await found.leftovers():
                await found.wipe(run_id)
            assert await asyncio.to_thread(left, name) == []


def left(name: str) -> list[str]:
    """What a namespace still has of runs."""
    kinds = "pods,jobs,services,secrets"
    if kubectl("get", "crd", "mpijobs.kubeflow.org", "--ignore-not-found"):
        kinds += ",mpijobs.kubeflow.org"
    words = ("get", kinds, "-n", name, "-l", "anubis.dev/run", "-o", "json")
    items = json.loads(kubectl(*words))["items"]
    return [f"{one['kind']}/{one['metadata']['name']}" for one in items]
