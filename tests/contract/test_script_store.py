"""Every script store keeps the promises of the port."""

from __future__ import annotations

import pathlib

import pytest

from anubis.adapters.script_store.directory import DirectoryScriptStore
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.ports.script_store import ScriptStore
from anubis.testing.contracts.script_store import ScriptStoreContract, a_file, an_archive


class TestMemory(ScriptStoreContract):
    @pytest.fixture
    def store(self) -> ScriptStore:
        return MemoryScriptStore()

    @pytest.fixture
    def again(self, store: ScriptStore) -> ScriptStore:
        return store


class TestDirectory(ScriptStoreContract):
    @pytest.fixture
    def store(self, tmp_path: pathlib.Path) -> ScriptStore:
        return DirectoryScriptStore(tmp_path / "scripts")

    @pytest.fixture
    def again(self, tmp_path: pathlib.Path) -> ScriptStore:
        return DirectoryScriptStore(tmp_path / "scripts")

    async def test_only_whole_archives_are_left_in_the_folder(
        self, store: ScriptStore, tmp_path: pathlib.Path
    ) -> None:
        archive = an_archive(a_file())
        await store.put(archive.name, archive.parts())
        await store.put(archive.name, archive.parts())

        assert [file.name for file in (tmp_path / "scripts").iterdir()] == [archive.name]
