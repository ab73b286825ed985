"""The Kubernetes engine keeps the promises of the port, on a real cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests import kubernetes_engines, real_parts
from tests.contract.test_engine import shell

from anubis.adapters.engine.fake import Script
from anubis.adapters.engine.kubernetes.engine import KubernetesEngine
from anubis.domain import blanks
from anubis.domain.observation import EndCause
from anubis.domain.plan import Plan, Unit
from anubis.ports.engine import Engine
from anubis.testing.contracts.engine import (
    EngineContract,
    ServiceContract,
    a_new_run,
    a_plan,
    end,
    output,
    watch,
)
from anubis.testing.contracts.engine.serving import PORT

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    real_parts.need_cluster()
    with kubernetes_engines.namespace() as name:
        yield name


@pytest.fixture(scope="module")
def kubeconfig(namespace: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """With the rights of our chart, and no others: all promises are kept with those."""
    folder = tmp_path_factory.mktemp("account")
    return kubernetes_engines.account_of_the_chart(namespace, folder)


class TestKubernetes(EngineContract):
    """Scripts become shell programs of a small image."""

    def plan(self, program: Script) -> Plan:
        if program.cause is EndCause.NOT_STARTED:
            return a_plan("no-program-has-this-name", image=real_parts.busybox())
        return a_plan("sh", "-c", shell(program), image=real_parts.busybox())

    @pytest.fixture
    async def engine(
        self, tmp_path: Path, namespace: str, kubeconfig: str
    ) -> AsyncIterator[Engine]:
        opened = kubernetes_engines.opened(tmp_path, namespace, kubeconfig=kubeconfig)
        async with opened as engine:
            yield engine


HTTPD = r"""
mkdir -p /www && echo hello > /www/ready
echo here
exec httpd -f -p "$0" -h /www
"""


class TestServicesOfKubernetes(ServiceContract):
    """A small server and its client, of a shell's programs."""

    @pytest.fixture
    async def engine(
        self, tmp_path: Path, namespace: str, kubeconfig: str
    ) -> AsyncIterator[Engine]:
        self.home, self.namespace, self.kubeconfig = tmp_path, namespace, kubeconfig
        opened = kubernetes_engines.opened(tmp_path, namespace, kubeconfig=kubeconfig)
        async with opened as engine:
            yield engine

    def attached(self) -> KubernetesEngine:
        return kubernetes_engines.engine(self.home, self.namespace, kubeconfig=self.kubeconfig)

    def server(self) -> Unit:
        command = ("sh", "-c", HTTPD, blanks.port("server", PORT))
        image = real_parts.busybox()
        return Unit(name="server", command=command, environment={}, image=image, ports=(PORT,))

    def client(self) -> Unit:
        url = f"http://{blanks.host('server')}:{blanks.port('server', PORT)}/ready"
        command = ("wget", "-q", "-O", "-", url)
        return Unit(name="client", command=command, environment={}, image=real_parts.busybox())


async def test_two_replicas_that_start_the_same_unit_make_one_pod(
    tmp_path: Path, namespace: str
) -> None:
    """Both believe that the run is theirs, as after a split; the cluster knows better."""
    plan = a_plan("sh", "-c", "echo $RANDOM$RANDOM; sleep 2", image=real_parts.busybox())
    homes, run_id = (tmp_path / "one", tmp_path / "two"), a_new_run()
    for home in homes:
        (home / "kubernetes").mkdir(parents=True)
        (home / "kubernetes" / "installation").write_text(str(run_id)[-12:])
    async with (
        kubernetes_engines.engine(homes[0], namespace) as one,
        kubernetes_engines.engine(homes[1], namespace) as two,
    ):
        await asyncio.gather(one.start(run_id, plan), two.start(run_id, plan))
        seen = await asyncio.gather(watch(one, run_id), watch(two, run_id))
        words = ("get", "pods", "-n", namespace, "-l", f"anubis.dev/run={run_id}", "-o", "name")
        assert len(kubernetes_engines.kubectl(*words).split()) == 1
        assert output(seen[0]) == output(seen[1]) != b""
        assert end(seen[0]).exit_code == end(seen[1]).exit_code == 0
        await one.remove(run_id)
        await two.remove(run_id)
    assert kubernetes_engines.left(namespace) == []
