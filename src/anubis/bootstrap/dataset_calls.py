"""The datasets of this machine, for embedded commands and inside a service.

Those of a service are answered by ``anubis.client.datasets``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from anubis.domain.dataset import Dataset, DatasetKey, Reference, Report
from anubis.ports.dataset_cache import DatasetCache


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LocalDatasets:
    """Those of this machine. See ``Datasets`` for what its calls promise."""

    cache: DatasetCache

    async def all(self) -> Sequence[Dataset]:
        """All datasets, last used first."""
        return await self.cache.list()

    async def get(self, key: str) -> Dataset:
        """The dataset that a key, or the beginning of one, means."""
        return await self.cache.get(key)

    async def add(self, reference: Reference, *, report: Report) -> Dataset:
        """Fetch it in this process."""
        return await self.cache.fetch(reference, run=None, report=report)

    async def verify(self, key: DatasetKey) -> bool:
        """Read all of it again."""
        return await self.cache.verify(key)

    async def evict(self, key: DatasetKey) -> int:
        """Forget it; the bytes that became free."""
        return await self.cache.evict(key)
