"""Docker engines for tests, which leave nothing behind."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from tests import docker_images

from anubis.adapters.engine.docker import composing
from anubis.adapters.engine.docker.engine import DockerEngine

ADDRESS = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


@contextlib.asynccontextmanager
async def opened(
    home: Path, *, pull: str = "never", address: str = ADDRESS, private_networks: bool = False
) -> AsyncIterator[DockerEngine]:
    """An engine of a home. At its end, all that the home has is deleted, and looked for."""
    async with DockerEngine(
        home / "docker", address, pull=pull, revive=None, private_networks=private_networks
    ) as engine:
        try:
            yield engine
        finally:
            for run_id in await engine.leftovers():
                await engine.wipe(run_id)
    if address == ADDRESS:
        assert left(home) == ""


def left(home: Path) -> str:
    """The ids of everything that bears the label of a home; empty: nothing."""
    label = f"--filter=label={composing.HOME}={composing.home_id(home)}"
    lists = (("ps", "--all"), ("network", "ls"), ("volume", "ls"))
    said = (docker_images.docker(*words, "--quiet", label).stdout for words in lists)
    return "".join(said).strip()
