"""Every series store keeps the promises of the port."""

from __future__ import annotations

import pathlib

import pytest

from anubis.adapters.series_store.directory import DirectorySeriesStore
from anubis.adapters.series_store.memory import MemorySeriesStore
from anubis.ports.series_store import SeriesStore
from anubis.testing.contracts.series_store import SeriesStoreContract


class TestMemory(SeriesStoreContract):
    @pytest.fixture
    def store(self) -> SeriesStore:
        return MemorySeriesStore()

    @pytest.fixture
    def reader(self, store: SeriesStore) -> SeriesStore:
        return store


class TestDirectory(SeriesStoreContract):
    @pytest.fixture
    def store(self, tmp_path: pathlib.Path) -> SeriesStore:
        return DirectorySeriesStore(tmp_path / "series")

    @pytest.fixture
    def reader(self, tmp_path: pathlib.Path) -> SeriesStore:
        return DirectorySeriesStore(tmp_path / "series")
