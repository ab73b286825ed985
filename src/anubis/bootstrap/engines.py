"""The engines of this machine: which there are, and how they are wired.

Engines ── ProcessEngine ──► zygote ──► one shim per unit
        └─ DockerEngine ───► zygote ──► one guard per container
                        └──► the daemon, through its socket
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from anubis.adapters.engine.docker.capabilities import DOCKER
from anubis.adapters.engine.process.capabilities import PROCESS
from anubis.ports.engine import Capabilities, Engine
from anubis.settings.model import Settings

if TYPE_CHECKING:
    from anubis.adapters.engine.docker.engine import DockerEngine
    from anubis.adapters.engine.process.engine import ProcessEngine

OFF = "none"  #: the ``docker_host`` of who wants no Docker


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Engines:
    """All that are open."""

    process: ProcessEngine
    docker: DockerEngine | None

    @property
    def by_name(self) -> Mapping[str, Engine]:
        """As runs name them."""
        return {
            PROCESS.name: self.process,
            **({DOCKER.name: self.docker} if self.docker is not None else {}),
        }


def capabilities(settings: Settings) -> Mapping[str, Capabilities]:
    """What can be done here. Asks nobody: whether a daemon answers is seen when it is needed."""
    return {
        engine.name: engine for engine in (PROCESS, DOCKER) if not absence(settings, engine.name)
    }


def absence(settings: Settings, name: str) -> str:
    """Why this machine has no engine of this name, and how to change that; empty if it has."""
    if name == PROCESS.name:
        return ""
    if name != DOCKER.name:
        return "Other engines are not part of this version; choose one with --engine."
    if settings.docker_host == OFF:
        return "The engine 'docker' is turned off: docker_host (ANUBIS_DOCKER_HOST) is none."
    if importlib.util.find_spec("aiodocker") is None:
        return (
            "The engine 'docker' needs a library: "
            "pip install 'anubis[docker]', or make extras in a clone."
        )
    return ""


@contextlib.asynccontextmanager
async def opened(settings: Settings, revive: tuple[str, ...] | None) -> AsyncIterator[Engines]:
    """Open them. ``revive`` is how whoever guards runs starts the runtime again."""
    # Here and not above: commands ask what engines can do, and open none.
    from anubis.adapters.engine.process.engine import ProcessEngine

    async with contextlib.AsyncExitStack() as stack:
        process = await stack.enter_async_context(ProcessEngine(settings.runs, revive=revive))
        docker = None
        # Also where its library is missing: it may be installed while the runtime goes on, and who
        # submits a run is told by then that the engine is there.
        if settings.docker_host != OFF:
            docker = await stack.enter_async_context(docker_engine(settings, revive))
        yield Engines(process=process, docker=docker)


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
