"""Files and folders of this machine, by path and by ``file:`` URI."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from anubis.adapters.dataset_cache.directory import DirectoryDatasetCache
from anubis.adapters.dataset_source.file import FileSource
from anubis.domain.dataset import Reference
from anubis.domain.errors import DatasetInvalid, SourceUnavailable
from anubis.testing.contracts.dataset_cache import ignore


@pytest.mark.parametrize("form", ["{}", "file://{}", "file://localhost{}", "FILE://{}", "file:{}"])
async def test_a_file_is_copied_and_not_shared_with_its_original(
    cache: DirectoryDatasetCache, tmp_path: Path, form: str
) -> None:
    original = tmp_path / "a b.csv"
    original.write_bytes(b"x" * 10_000)
    uri = form.format(str(original).replace(" ", "%20") if ":" in form else original)

    dataset = await cache.fetch(Reference(uri=uri), run=None, report=ignore)

    copy = Path(dataset.path)
    assert (copy.name, copy.read_bytes()) == ("a b.csv", b"x" * 10_000)
    assert not copy.samefile(original)
    original.write_bytes(b"changed")
    assert copy.read_bytes() == b"x" * 10_000
    again = await cache.fetch(Reference(uri=uri), run=None, report=ignore)
    assert Path(again.path).read_bytes() == b"changed"


async def test_a_folder_comes_with_all_below_it_and_links_to_files_as_files(
    cache: DirectoryDatasetCache, tmp_path: Path
) -> None:
    root = tmp_path / "set"
    (root / "deep/deeper").mkdir(parents=True)
    (root / "deep/deeper/a").write_bytes(b"a")
    (root / "b").symlink_to(root / "deep/deeper/a")

    dataset = await cache.fetch(Reference(uri=f"file://{root}/"), run=None, report=ignore)

    copy = Path(dataset.path)
    assert (copy / "deep/deeper/a").read_bytes() == (copy / "b").read_bytes() == b"a"
    assert (dataset.files, (copy / "b").is_symlink()) == (2, False)


async def test_holes_of_a_file_stay_holes(cache: DirectoryDatasetCache, tmp_path: Path) -> None:
    original = tmp_path / "sparse"
    with original.open("wb") as file:
        file.truncate(200 * 1024**2)
        file.seek(100 * 1024**2)
        file.write(b"middle")

    dataset = await cache.fetch(Reference(uri=str(original)), run=None, report=ignore)

    found = Path(dataset.path).stat()
    assert (found.st_size, found.st_blocks < 2048) == (200 * 1024**2, True)
    assert await cache.verify(dataset.key)


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("data/train.csv", "relative"),
        ("train.csv", "relative"),
        ("file:train.csv", "relative"),
        ("file://train.csv", "host"),
        ("file://elsewhere/data/train.csv", "host"),
        ("/nowhere/at/all", "No such file"),
        ("/dev/null", "no file and no folder"),
    ],
)
async def test_what_is_no_file_of_this_machine_is_refused(
    cache: DirectoryDatasetCache, uri: str, reason: str
) -> None:
    with pytest.raises(DatasetInvalid, match=reason):
        await cache.fetch(Reference(uri=uri), run=None, report=ignore)


async def test_a_folder_with_a_pipe_or_a_linked_folder_is_refused(
    cache: DirectoryDatasetCache, tmp_path: Path
) -> None:
    for name in ("pipes", "links", "empty"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipes/fifo")
    (tmp_path / "links/loop").symlink_to(tmp_path)

    for name in ("pipes", "links", "empty"):
        with pytest.raises(DatasetInvalid):
            await cache.fetch(Reference(uri=str(tmp_path / name)), run=None, report=ignore)


async def test_a_file_that_changes_while_it_is_read_is_told(tmp_path: Path) -> None:
    original = tmp_path / "growing"
    original.write_bytes(b"x" * 100)
    source = FileSource()
    [item] = (await source.list(str(original))).items
    assert b"".join([bytes(piece) async for piece in source.read(item, 10, 20)]) == b"x" * 10
    original.write_bytes(b"x" * 101)

    with pytest.raises(SourceUnavailable, match="changed"):
        await anext(aiter(source.read(item, 0, None)))
