"""For tests of the dataset cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.dataset_cache.web_server import Server, serving

from anubis.adapters.dataset_cache.directory import DirectoryDatasetCache
from anubis.adapters.dataset_source.available import sources
from anubis.testing.contracts.dataset_cache import HastyClock


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as state:
        yield state


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "datasets"


@pytest.fixture
def cache(folder: Path) -> DirectoryDatasetCache:
    return DirectoryDatasetCache(folder, sources(), HastyClock())


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
