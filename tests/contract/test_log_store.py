"""Every log store keeps the promises of the port."""

from __future__ import annotations

import pathlib

import pytest

from anubis.adapters.log_store.local import LocalLogStore
from anubis.adapters.log_store.memory import MemoryLogStore
from anubis.ports.log_store import LogStore
from anubis.testing.contracts.log_store import LogStoreContract


class TestMemory(LogStoreContract):
    @pytest.fixture
    def store(self) -> LogStore:
        return MemoryLogStore()

    @pytest.fixture
    def reader(self, store: LogStore) -> LogStore:
        return store


class TestLocal(LogStoreContract):
    @pytest.fixture
    def store(self, tmp_path: pathlib.Path) -> LogStore:
        return LocalLogStore(tmp_path / "logs")

    @pytest.fixture
    def reader(self, tmp_path: pathlib.Path) -> LogStore:
        return LocalLogStore(tmp_path / "logs")
