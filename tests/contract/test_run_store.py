"""Both run stores keep the promises of the port."""

from __future__ import annotations

import pathlib
from collections.abc import AsyncIterator

import pytest

from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.adapters.run_store.sqlite import SqliteRunStore
from anubis.ports.run_store import RunStore
from anubis.testing.contracts.run_store import RunStoreContract


class TestMemory(RunStoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[RunStore]:
        async with MemoryRunStore.open() as store:
            yield store


class TestSqlite(RunStoreContract):
    @pytest.fixture
    async def store(self, tmp_path: pathlib.Path) -> AsyncIterator[RunStore]:
        async with SqliteRunStore.open(tmp_path / "anubis.db") as store:
            yield store
