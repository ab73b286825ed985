"""The dataset cache of an installation, with all sources that it can read from."""

from __future__ import annotations

from anubis.adapters.clock.system import SystemClock
from anubis.adapters.dataset_cache.directory import DirectoryDatasetCache
from anubis.adapters.dataset_source.available import sources
from anubis.ports.dataset_cache import DatasetCache
from anubis.settings.model import Settings


def cache(settings: Settings) -> DatasetCache:
    """Open it; its folder is made when the first dataset comes."""
    return DirectoryDatasetCache(
        settings.dataset_cache,
        sources(),
        SystemClock(),
        budget=settings.datasets_bytes,
    )
