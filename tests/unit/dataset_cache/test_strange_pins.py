"""What a program leaves beside the pins of its own run concerns nobody else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from anubis.adapters.dataset_cache.directory import DirectoryDatasetCache
from anubis.domain.dataset import Reference
from anubis.domain.errors import StoreUnavailable
from anubis.domain.run import RunId
from anubis.testing.contracts.dataset_cache import ignore


async def _fetch(cache: DirectoryDatasetCache, path: Path, run: str) -> bytes:
    found = await cache.fetch(Reference(uri=str(path)), run=RunId(run), report=ignore)
    return Path(found.path).read_bytes()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(b"something")
    return path


async def test_pipes_folders_links_and_large_files_among_pins_keep_nobody_waiting(
    cache: DirectoryDatasetCache, folder: Path, data: Path
) -> None:
    await _fetch(cache, data, "bad")
    (folder / "pins" / "a file").write_text("no folder of a run")
    os.mkfifo(folder / "pins" / "bad" / "pipe")
    (folder / "pins" / "bad" / "folder").mkdir()
    (folder / "pins" / "bad" / "link").symlink_to("/dev/zero")
    (folder / "pins" / "bad" / "binary").write_bytes(b"\xff\x00")
    with (folder / "pins" / "bad" / "large").open("wb") as file:
        file.truncate(1 << 40)

    assert await _fetch(cache, data, "good") == b"something"
    assert {"good", "bad"} <= set(await cache.pins())
    [known] = await cache.list()
    assert set(known.pinned_by) == {"good", "bad"}
    await cache.unpin(RunId("bad"))
    assert "bad" not in await cache.pins()


async def test_no_pin_is_written_through_a_link(
    cache: DirectoryDatasetCache, folder: Path, data: Path, tmp_path: Path
) -> None:
    await _fetch(cache, data, "first")
    [key] = (path.name for path in (folder / "pins" / "first").iterdir())
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    (folder / "pins" / "bad").mkdir()
    (folder / "pins" / "bad" / key).symlink_to(victim)

    with pytest.raises(StoreUnavailable):
        await _fetch(cache, data, "bad")

    assert victim.read_text() == "as it was"
