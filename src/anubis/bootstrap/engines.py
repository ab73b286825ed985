"""The engines of this installation: which there are, and how they are wired.

Engines ── ProcessEngine ──► zygote ──► one shim per unit
        ├─ DockerEngine ───► zygote ──► one guard per container
        │               └──► the daemon, through its socket
        └─ KubernetesEngine ──► the API server ──► one recorder per pod
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from anubis.adapters.engine.docker.capabilities import DOCKER
from anubis.adapters.engine.kubernetes.capabilities import KUBERNETES
from anubis.adapters.engine.process.capabilities import PROCESS
from anubis.ports.engine import Capabilities, Engine
from anubis.ports.script_store import ScriptStore
from anubis.settings.model import Settings

if TYPE_CHECKING:
    from anubis.adapters.engine.docker.engine import DockerEngine
    from anubis.adapters.engine.kubernetes.engine import KubernetesEngine
    from anubis.adapters.engine.process.engine import ProcessEngine

OFF = "none"  #: what a setting says that turns an engine off

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
"""What a pod has that may talk to its cluster."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Engines:
    """All that are open."""

    process: ProcessEngine
    docker: DockerEngine | None
    kubernetes: KubernetesEngine | None

    @property
    def by_name(self) -> Mapping[str, Engine]:
        """As runs name them."""
        found: dict[str, Engine | None] = {
            PROCESS.name: self.process,
            DOCKER.name: self.docker,
            KUBERNETES.name: self.kubernetes,
        }
        return {name: engine for name, engine in found.items() if engine is not None}


def capabilities(settings: Settings) -> Mapping[str, Capabilities]:
    """What can be done here. Asks nobody: whether somebody answers is seen when it is needed."""
    known = (PROCESS, DOCKER, KUBERNETES)
    return {engine.name: engine for engine in known if not absence(settings, engine.name)}


def absence(settings: Settings, name: str) -> str:
    """Why this machine has no engine of this name, and how to change that; empty if it has."""
    if name not in settings.engines.split(","):
        return f"Only these may be used here: engines (ANUBIS_ENGINES) is {settings.engines}."
    if name == PROCESS.name:
        return ""
    if name == DOCKER.name:
        return _absence_of_docker(settings)
    if name == KUBERNETES.name:
        return _absence_of_kubernetes(settings)
    return "Other engines are not part of this version; choose one with --engine."


def _absence_of_docker(settings: Settings) -> str:
    if settings.docker_host == OFF:
        return "The engine 'docker' is turned off: docker_host (ANUBIS_DOCKER_HOST) is none."
    return missing("docker", "aiodocker")


def _absence_of_kubernetes(settings: Settings) -> str:
    if settings.kubernetes == OFF:
        return "The engine 'kubernetes' is turned off: kubernetes (ANUBIS_KUBERNETES) is none."
    if not knows_a_cluster(settings):
        if settings.kubeconfig:
            return (
                f"The engine 'kubernetes' knows no cluster: KUBECONFIG is {settings.kubeconfig}, "
                "and there is no such file."
            )
        return (
            "The engine 'kubernetes' knows no cluster: set KUBECONFIG to a file that says how one "
            "is reached, or have it at ~/.kube/config."
        )
    return missing("kubernetes", "kubernetes_asyncio")


def missing(engine: str, module: str) -> str:
    """What an engine needs to be installed; empty if it is."""
    if importlib.util.find_spec(module) is not None:
        return ""
    return (
        f"The engine '{engine}' needs a library: "
        f"pip install 'anubis[{engine}]', or make extras in a clone."
    )


def knows_a_cluster(settings: Settings) -> bool:
    """Whether anything says how a cluster is reached. Nobody is asked."""
    if settings.kubeconfig:
        return any(Path(one).expanduser().is_file() for one in settings.kubeconfig.split(":"))
    if "KUBERNETES_SERVICE_HOST" in os.environ and SERVICE_ACCOUNT.is_file():
        return True
    return Path("~/.kube/config").expanduser().is_file()


@contextlib.asynccontextmanager
async def opened(
    settings: Settings, revive: tuple[str, ...] | None, scripts: ScriptStore
) -> AsyncIterator[Engines]:
    """Open them. ``revive`` is how whoever guards runs starts the runtime again; ``scripts`` holds
    the code that engines bring themselves.
    """
    # Here and not above: commands ask what engines can do, and open none.
    from anubis.adapters.engine.process.engine import ProcessEngine

    async with contextlib.AsyncExitStack() as stack:
        process = await stack.enter_async_context(ProcessEngine(settings.runs, revive=revive))
        docker, kubernetes = None, None
        # Also where a library is missing: it may be installed while the runtime goes on, and who
        # submits a run is told by then that the engine is there.
        if settings.docker_host != OFF:
            docker = await stack.enter_async_context(docker_engine(settings, revive))
        if settings.kubernetes != OFF:
            kubernetes = await stack.enter_async_context(kubernetes_engine(settings, scripts))
        yield Engines(process=process, docker=docker, kubernetes=kubernetes)


def docker_engine(settings: Settings, revive: tuple[str, ...] | None = None) -> DockerEngine:
    """The Docker engine of a home. Nobody is asked before it is used."""
    from anubis.adapters.engine.docker.engine import DockerEngine

    return DockerEngine(
        settings.docker,
        settings.docker_host,
        pull=settings.pull,
        revive=revive,
        private_networks=settings.private_networks,
    )


def kubernetes_engine(settings: Settings, scripts: ScriptStore) -> KubernetesEngine:
    """The Kubernetes engine of a home. Nobody is asked before it is used."""
    from anubis.adapters.engine.kubernetes.engine import KubernetesEngine
    from anubis.adapters.ssh_keys import openssh
    from anubis.bootstrap import clusters

    return KubernetesEngine(
        settings.cluster,
        clusters.access(settings),
        lambda: clusters.terms(settings),
        scripts=scripts,
        make_keys=openssh.make,
    )
