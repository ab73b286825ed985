"""Whether runs on the Docker engine are possible here."""

from __future__ import annotations

import shutil
from pathlib import Path

from anubis.bootstrap import engines
from anubis.domain.errors import EngineUnavailable
from anubis.entrypoints.cli.checks.finding import Finding, doubtful, good
from anubis.entrypoints.cli.rendering import text
from anubis.settings.model import Settings

LITTLE_BYTES = 10 * 1024**3
"""An image with a framework for GPUs has that size."""


async def answers(settings: Settings) -> Finding:
    """Who answers, and whether there is room for images. Without Docker, all else works."""
    if reason := engines.absence(settings, "docker"):
        return good("docker", f"not used. {reason}")
    engine = engines.docker_engine(settings)
    try:
        daemon = await engine.describe()
    except EngineUnavailable as error:
        if settings.docker.is_dir():  # it was used here
            return doubtful("docker", str(error), "runs on the docker engine wait for it")
        return good("docker", f"not used. {error}")
    finally:
        await engine.close()
    place = Path(daemon.folder)
    if not place.is_dir():  # in a virtual machine, or not ours to see
        return good("docker", daemon.words)
    free = shutil.disk_usage(place).free
    found = f"{daemon.words}, {text.size(free)} free for images"
    if free < LITTLE_BYTES:
        return doubtful("docker", found, "'docker system df' shows what takes the room")
    return good("docker", found)
