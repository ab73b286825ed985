"""Every script store keeps the promises of the port."""

from __future__ import annotations

import asyncio
import os
import pathlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from anubis.adapters.script_store.directory import DirectoryScriptStore
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.domain.errors import StoreUnavailable
from anubis.ports.script_store import ScriptStore
from anubis.testing.clock import ManualClock
from anubis.testing.contracts.script_store import (
    DAY,
    NARROW,
    ScriptStoreContract,
    a_file,
    an_archive,
)


class TestMemory(ScriptStoreContract):
    @pytest.fixture
    def store(self, clock: ManualClock) -> ScriptStore:
        return MemoryScriptStore(clock)

    @pytest.fixture
    def again(self, store: ScriptStore) -> ScriptStore:
        return store

    @pytest.fixture
    def narrow(self, clock: ManualClock) -> ScriptStore:
        return MemoryScriptStore(clock, most=NARROW)


class TestDirectory(ScriptStoreContract):
    @pytest.fixture
    def store(self, tmp_path: pathlib.Path, clock: ManualClock) -> ScriptStore:
        return DirectoryScriptStore(tmp_path / "scripts", clock)

    @pytest.fixture
    def again(self, tmp_path: pathlib.Path, clock: ManualClock) -> ScriptStore:
        return DirectoryScriptStore(tmp_path / "scripts", clock)

    @pytest.fixture
    def narrow(self, tmp_path: pathlib.Path, clock: ManualClock) -> ScriptStore:
        return DirectoryScriptStore(tmp_path / "narrow", clock, most=NARROW)

    async def test_only_whole_archives_are_left_in_the_folder(
        self, store: ScriptStore, tmp_path: pathlib.Path
    ) -> None:
        archive = an_archive(a_file())
        await store.put(archive.name, archive.parts())
        await store.put(archive.name, archive.parts())

        assert [file.name for file in (tmp_path / "scripts").iterdir()] == [archive.name]

    async def test_an_upload_that_never_ended_is_removed_and_one_in_progress_is_not(
        self, store: ScriptStore, tmp_path: pathlib.Path
    ) -> None:
        archive = an_archive(a_file())
        await store.put(archive.name, archive.parts())
        for name in (".upload-old", ".upload-new", "notes.txt"):
            (tmp_path / "scripts" / name).write_bytes(b"half")
        for name in (".upload-old", "notes.txt"):
            os.utime(tmp_path / "scripts" / name, (1, 1))

        assert await store.forget_unfinished(datetime(2000, 1, 1, tzinfo=UTC)) == 1
        left = {file.name for file in (tmp_path / "scripts").iterdir()}
        assert left == {archive.name, ".upload-new", "notes.txt"}

    async def test_an_upload_that_lost_its_file_leaves_no_archive(
        self, store: ScriptStore, tmp_path: pathlib.Path
    ) -> None:
        archive = an_archive(a_file())

        async def endless_pause() -> AsyncIterator[bytes]:
            yield archive.content
            assert await store.forget_unfinished(datetime(9000, 1, 1, tzinfo=UTC)) == 1

        with pytest.raises(StoreUnavailable):
            await store.put(archive.name, endless_pause())
        assert list((tmp_path / "scripts").iterdir()) == []

    async def test_who_is_told_that_an_archive_is_there_finds_it(
        self, store: ScriptStore, clock: ManualClock, tmp_path: pathlib.Path
    ) -> None:
        archives = [an_archive(a_file(f"{number}")) for number in range(50)]
        for archive in archives:
            await store.put(archive.name, archive.parts())
        clock.advance(DAY)
        forgetting = asyncio.create_task(store.forget_unused(clock.now()))
        told = []
        for archive in archives:
            told.append(await store.has(archive.name))
            await asyncio.sleep(0)
        forgotten = await forgetting

        there = [(tmp_path / "scripts" / archive.name).exists() for archive in archives]
        assert there == told
        assert forgotten == told.count(False)
