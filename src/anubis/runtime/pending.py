"""Whether a home needs a runtime at all.

Apart from ``serving``, because every command asks this and must not pay for importing a worker.
"""

from __future__ import annotations

from anubis.domain.run import ACTIVE
from anubis.ports.run_store import RunStore


async def has_work(store: RunStore) -> bool:
    """Whether any run has not ended."""
    counts = await store.counts()
    return any(counts.get(state, 0) for state in ACTIVE)
