"""The stores of the service keep the promises of their ports, in memory and in one database."""

from __future__ import annotations

import pathlib
from collections.abc import AsyncIterator

import pytest

from anubis.adapters.access_store.memory import MemoryAccessStore
from anubis.adapters.access_store.sqlite import SqliteAccessStore
from anubis.adapters.access_store.sqlite import store as sqlite_access
from anubis.adapters.action_store.memory import MemoryActionStore
from anubis.adapters.action_store.sqlite import SqliteActionStore
from anubis.adapters.schedule_store.memory import MemoryScheduleStore
from anubis.adapters.schedule_store.sqlite import SqliteScheduleStore
from anubis.adapters.sqlite import Database
from anubis.ports.access_store import AccessStore
from anubis.ports.action_store import ActionStore
from anubis.ports.schedule_store import ScheduleStore
from anubis.testing import builders
from anubis.testing.clock import NOON
from anubis.testing.contracts.access_store import AccessStoreContract
from anubis.testing.contracts.action_store import ActionStoreContract
from anubis.testing.contracts.schedule_store import ScheduleStoreContract


@pytest.fixture
async def database(tmp_path: pathlib.Path) -> AsyncIterator[Database]:
    async with Database.open(tmp_path / "anubis.db") as database:
        yield database


class TestMemorySchedules(ScheduleStoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[ScheduleStore]:
        async with MemoryScheduleStore.open() as store:
            yield store


class TestSqliteSchedules(ScheduleStoreContract):
    @pytest.fixture
    def store(self, database: Database) -> ScheduleStore:
        return SqliteScheduleStore(database)


class TestMemoryAccess(AccessStoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[AccessStore]:
        async with MemoryAccessStore.open() as store:
            yield store


class TestSqliteAccess(AccessStoreContract):
    @pytest.fixture
    def store(self, database: Database) -> AccessStore:
        return SqliteAccessStore(database)

    async def test_a_long_record_is_forgotten_in_parts(
        self, store: AccessStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_access, "AT_ONCE", 2)
        for _ in range(5):
            await store.note(builders.an_audit_entry())

        assert await store.forget_before(NOON + builders.HOUR) == 5
        assert await store.audit() == ()


class TestMemoryActions(ActionStoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[ActionStore]:
        async with MemoryActionStore.open() as store:
            yield store


class TestSqliteActions(ActionStoreContract):
    @pytest.fixture
    def store(self, database: Database) -> ActionStore:
        return SqliteActionStore(database)
