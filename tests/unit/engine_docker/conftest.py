"""An engine over the real Docker daemon of this machine, and what tests ask it for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests import real_parts
from tests.docker_engines import opened

from anubis.adapters.engine.docker.engine import DockerEngine


@pytest.fixture
def image() -> str:
    """A small image with a shell."""
    return real_parts.busybox()


@pytest.fixture
async def engine(tmp_path: Path, image: str) -> AsyncIterator[DockerEngine]:
    """Of a home of its own; nothing of it is left when the test is over."""
    async with opened(tmp_path) as engine:
        yield engine
