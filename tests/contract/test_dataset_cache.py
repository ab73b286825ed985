"""Every dataset cache keeps the promises of the port."""

from __future__ import annotations

from pathlib import Path

import pytest

from anubis.adapters.dataset_cache.directory import DirectoryDatasetCache
from anubis.adapters.dataset_cache.memory import MemoryDatasetCache
from anubis.domain.dataset import Dataset, DatasetKind
from anubis.testing.contracts.dataset_cache import (
    Content,
    DatasetCacheContract,
    HastyClock,
    ScriptedSource,
)


class TestMemory(DatasetCacheContract):
    @pytest.fixture
    def cache(self, source: ScriptedSource, clock: HastyClock) -> MemoryDatasetCache:
        return MemoryDatasetCache({"test": source}, clock)

    @pytest.fixture
    def again(self, cache: MemoryDatasetCache) -> MemoryDatasetCache:
        return cache

    @pytest.fixture
    def content(self, cache: MemoryDatasetCache) -> Content:
        return lambda dataset: cache.content(dataset.key)


class TestDirectory(DatasetCacheContract):
    @pytest.fixture
    def cache(
        self, tmp_path: Path, source: ScriptedSource, clock: HastyClock
    ) -> DirectoryDatasetCache:
        return DirectoryDatasetCache(tmp_path / "datasets", {"test": source}, clock)

    @pytest.fixture
    def again(
        self, tmp_path: Path, source: ScriptedSource, clock: HastyClock
    ) -> DirectoryDatasetCache:
        return DirectoryDatasetCache(tmp_path / "datasets", {"test": source}, clock)

    @pytest.fixture
    def content(self) -> Content:
        return _read


def _read(dataset: Dataset) -> dict[str, bytes]:
    path = Path(dataset.path)
    if dataset.kind is DatasetKind.FILE:
        return {path.name: path.read_bytes()}
    files = (file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path)): file.read_bytes() for file in files}
