"""An engine on a real cluster, in a namespace of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests import kubernetes_engines, real_parts

from anubis.adapters.engine.kubernetes.engine import KubernetesEngine


@pytest.fixture
def namespace() -> Iterator[str]:
    """Deleted with all that is in it."""
    real_parts.need_cluster()
    with kubernetes_engines.namespace() as name:
        yield name


@pytest.fixture
async def engine(tmp_path: Path, namespace: str) -> AsyncIterator[KubernetesEngine]:
    """Leaves nothing behind, which is looked for."""
    async with kubernetes_engines.opened(tmp_path, namespace) as found:
        yield found
