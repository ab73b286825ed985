"""The folder of the cache: what is on the disk, and what happens when others touch it."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import hashlib
import os
import stat
from pathlib import Path

import pytest

from anubis.adapters.dataset_cache.directory import DirectoryDatasetCache, room, transferring
from anubis.domain.dataset import Progress, Reference, checksum
from anubis.domain.errors import (
    DatasetInvalid,
    NotPossible,
    SourceUnavailable,
    StorageFull,
    StoreUnavailable,
)
from anubis.domain.run import RunId
from anubis.testing.contracts.dataset_cache import HastyClock, ScriptedSource, ignore

RUN = RunId("run-1")
URI = "test://host/train.csv"
CONTENT = bytes(range(256)) * 40


@pytest.fixture
def source() -> ScriptedSource:
    return ScriptedSource()


@pytest.fixture
def cache(folder: Path, source: ScriptedSource) -> DirectoryDatasetCache:
    return DirectoryDatasetCache(folder, {"test": source}, HastyClock())


@dataclasses.dataclass(frozen=True)
class Disk:
    """A disk of blocks of one byte."""

    f_blocks: int
    f_bavail: int
    f_frsize: int = 1


def limited(
    folder: Path, source: ScriptedSource, *, size: int, budget: int | None = None
) -> DirectoryDatasetCache:
    """A cache on a disk of so many bytes, of which a twentieth is the reserve."""

    def measure(_: Path) -> room.DiskSize:
        files = (path for path in folder.rglob("*") if path.is_file() and "objects" in path.parts)
        taken = sum(path.stat().st_size for path in files)
        return Disk(f_blocks=size, f_bavail=size - taken)

    return DirectoryDatasetCache(
        folder, {"test": source}, HastyClock(), budget=budget, measure=measure
    )


async def test_content_is_read_only_and_the_cache_is_its_owners_alone(
    cache: DirectoryDatasetCache, source: ScriptedSource, folder: Path
) -> None:
    source.put("test://host/set/a/b", b"x")

    dataset = await cache.fetch(Reference(uri="test://host/set/"), run=None, report=ignore)

    root = Path(dataset.path)
    rights = [stat.S_IMODE(path.stat().st_mode) for path in (root, root / "a", root / "a/b")]
    assert rights == [0o555, 0o555, 0o444]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_nothing_is_left_of_a_transfer_that_ended(
    cache: DirectoryDatasetCache, source: ScriptedSource, folder: Path
) -> None:
    await cache.fetch(source.put(URI, CONTENT), run=None, report=ignore)
    wrong = Reference(uri=URI, checksum=checksum("0" * 32))
    with pytest.raises(DatasetInvalid):
        await cache.fetch(wrong, run=None, report=ignore)

    for name in ("partial", "removed"):
        assert list((folder / name).iterdir()) == []
    assert {path.name for path in (folder / "locks").iterdir()} == {"index", "room"}


async def test_looking_at_a_cache_that_is_not_there_does_not_make_it(
    cache: DirectoryDatasetCache, folder: Path
) -> None:
    assert (list(await cache.list()), list(await cache.pins())) == ([], [])
    await cache.unpin(RUN)
    assert list(await cache.shrink(0)) == []
    assert not folder.exists()


async def test_a_canceled_transfer_goes_on_where_it_was_noted(
    folder: Path, source: ScriptedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transferring, "KEEP_SECONDS", 0.01)
    reference = source.put(URI, CONTENT)
    source.breaks_after = [5000] * 20  # each attempt brings some bytes, then time passes
    cache = DirectoryDatasetCache(folder, {"test": source}, SlowClock())
    fetching = asyncio.create_task(cache.fetch(reference, run=None, report=ignore))
    await SlowClock.slept.wait()
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    source.breaks_after = []

    again = DirectoryDatasetCache(folder, {"test": source}, HastyClock())
    dataset = await again.fetch(reference, run=None, report=ignore)

    assert Path(dataset.path).read_bytes() == CONTENT
    assert [start for _, start, _ in source.reads] == [0, 5000]


class SlowClock(HastyClock):
    """Time in which a sleeper never wakes."""

    slept = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.slept.set()
        await asyncio.sleep(3600)


async def test_content_that_somebody_changed_is_not_used_but_fetched_again(
    cache: DirectoryDatasetCache, source: ScriptedSource
) -> None:
    reference = source.put(URI, CONTENT)
    path = Path((await cache.fetch(reference, run=None, report=ignore)).path)
    path.chmod(0o600)
    path.write_bytes(b"changed")

    dataset = await cache.fetch(reference, run=None, report=ignore)

    assert Path(dataset.path).read_bytes() == CONTENT


@pytest.mark.parametrize("run", [None, RUN])
async def test_damage_that_only_reading_shows_is_found_and_the_next_fetch_repairs_it(
    cache: DirectoryDatasetCache, source: ScriptedSource, run: RunId | None, folder: Path
) -> None:
    reference = source.put(URI, CONTENT)
    dataset = await cache.fetch(reference, run=run, report=ignore)
    path = Path(dataset.path)
    before = path.stat()
    path.chmod(0o600)
    path.write_bytes(b"?" * len(CONTENT))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    in_use = os.open(path, os.O_RDONLY)

    try:
        assert not await cache.verify(dataset.key)
        assert list(await cache.list()) == []
        repaired = await cache.fetch(reference, run=None, report=ignore)
        assert os.read(in_use, 1) == b"?"
    finally:
        os.close(in_use)

    assert Path(repaired.path).read_bytes() == CONTENT
    assert await cache.verify(repaired.key)
    await cache.unpin(RUN)
    assert len(list((folder / "objects").iterdir())) == 1


async def test_a_damaged_directory_is_found(
    cache: DirectoryDatasetCache, source: ScriptedSource
) -> None:
    source.put("test://host/set/a", b"aaa")
    dataset = await cache.fetch(Reference(uri="test://host/set/"), run=None, report=ignore)
    file = Path(dataset.path, "a")
    file.chmod(0o600)
    file.write_bytes(b"bbb")

    assert not await cache.verify(dataset.key)


async def test_a_directory_is_known_by_what_sha256sum_says_of_its_files(
    cache: DirectoryDatasetCache, source: ScriptedSource
) -> None:
    source.put("test://host/set/b", b"2")
    source.put("test://host/set/a/x", b"1")
    lines = [f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in _NAMES.items()]
    expected = hashlib.sha256("".join(lines).encode()).hexdigest()

    by_digest = Reference(uri="test://host/set/", checksum=checksum(f"sha256:{expected}"))
    dataset = await cache.fetch(by_digest, run=None, report=ignore)
    assert dataset.digest == f"sha256:{expected}"

    for wrong in ("0" * 32, "sha256:" + "0" * 64):
        with pytest.raises(DatasetInvalid, match="sha256"):
            await cache.fetch(
                Reference(uri="test://host/set/", checksum=checksum(wrong)), run=None, report=ignore
            )


_NAMES = {"a/x": b"1", "b": b"2"}


async def test_many_small_files_come_together(
    cache: DirectoryDatasetCache, source: ScriptedSource
) -> None:
    for number in range(1500):
        source.put(f"test://host/set/{number % 40}/{number}", str(number).encode())
    told: list[Progress] = []

    dataset = await cache.fetch(Reference(uri="test://host/set/"), run=None, report=told.append)

    assert (dataset.files, told[-1].done_bytes) == (1500, dataset.size_bytes)
    assert Path(dataset.path, "7/1447").read_bytes() == b"1447"
    assert await cache.verify(dataset.key)


async def test_a_run_keeps_what_it_uses_when_the_source_has_something_new(
    cache: DirectoryDatasetCache, source: ScriptedSource, folder: Path
) -> None:
    source.put(URI, b"old", "1")
    old = await cache.fetch(Reference(uri=URI), run=RUN, report=ignore)
    source.put(URI, b"new", "2")

    new = await cache.fetch(Reference(uri=URI), run=None, report=ignore)

    assert (Path(old.path).read_bytes(), Path(new.path).read_bytes()) == (b"old", b"new")
    await cache.unpin(RUN)
    assert not Path(old.path).exists()
    assert len(list((folder / "objects").iterdir())) == 1


async def test_room_is_made_by_evicting_what_no_run_uses(
    folder: Path, source: ScriptedSource
) -> None:
    cache = limited(folder, source, size=10_000)
    pinned, idle, wanted = (source.put(f"test://h/{n}", bytes([n]) * 4000) for n in (1, 2, 3))
    await cache.fetch(pinned, run=RUN, report=ignore)
    await cache.fetch(idle, run=None, report=ignore)

    await cache.fetch(wanted, run=None, report=ignore)

    assert {one.key for one in await cache.list()} == {pinned.key, wanted.key}


@pytest.mark.parametrize("budget", [None, 6_000])
async def test_what_does_not_fit_is_refused_before_a_byte_moves_and_evicts_nothing(
    folder: Path, source: ScriptedSource, budget: int | None
) -> None:
    cache = limited(folder, source, size=10_000, budget=budget)
    small, large = source.put("test://h/s", b"s" * 1000), source.put("test://h/l", b"l" * 9600)
    await cache.fetch(small, run=None, report=ignore)
    source.reads.clear()

    with pytest.raises(StorageFull, match=r"9,600 bytes are needed, 9,000 are free") as error:
        await cache.fetch(large, run=None, report=ignore)

    assert str(folder) in str(error.value)
    assert (source.reads, [one.key for one in await cache.list()]) == ([], [small.key])
    assert list((folder / "partial").iterdir()) == []


async def test_a_budget_counts_what_several_references_share_once(
    folder: Path, source: ScriptedSource
) -> None:
    cache = limited(folder, source, size=10**9, budget=10_000)
    for name in "abc":
        await cache.fetch(source.put(f"test://h/{name}", b"same" * 1000), run=None, report=ignore)

    assert len(await cache.list()) == 3


async def test_content_of_unknown_size_stops_before_the_reserve_is_gone(
    folder: Path, source: ScriptedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transferring, "CHECK_BYTES", 1000)
    source.tells_size = False
    source.put(URI, b"x" * 50_000)

    def measure(_: Path) -> room.DiskSize:
        written = sum(path.stat().st_size for path in folder.rglob("train.csv"))
        return Disk(f_blocks=10_000, f_bavail=10_000 - written)

    cache = DirectoryDatasetCache(folder, {"test": source}, HastyClock(), measure=measure)

    with pytest.raises(StorageFull):
        await cache.fetch(Reference(uri=URI), run=None, report=ignore)
    assert list((folder / "partial").iterdir()) == []


async def test_a_disk_that_is_full_all_the_same_is_told_as_such(
    cache: DirectoryDatasetCache, source: ScriptedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)

    with pytest.raises(StorageFull):
        await cache.fetch(source.put(URI, CONTENT), run=None, report=ignore)


async def test_a_folder_that_cannot_be_made_is_told_with_its_name(
    tmp_path: Path, source: ScriptedSource
) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = DirectoryDatasetCache(tmp_path / "file/datasets", {"test": source}, HastyClock())

    with pytest.raises(StoreUnavailable, match=r"file"):
        await cache.fetch(source.put(URI, CONTENT), run=None, report=ignore)


@pytest.mark.parametrize("name", ["../x", "a//b", "a/./b", "/x", "a", "n" * 256])
async def test_names_that_cannot_be_below_a_folder_are_refused(
    cache: DirectoryDatasetCache, source: ScriptedSource, folder: Path, name: str
) -> None:
    source.put("test://host/set/a/b", b"x")  # so that a file called "a" cannot be there as well
    source.put(f"test://host/set/{name}", b"x")

    with pytest.raises(DatasetInvalid):
        await cache.fetch(Reference(uri="test://host/set/"), run=None, report=ignore)
    assert not (folder / "partial/x").exists()


async def test_a_silent_source_says_that_there_is_an_old_copy_that_is_not_used(
    cache: DirectoryDatasetCache, source: ScriptedSource
) -> None:
    source.put(URI, CONTENT)
    await cache.fetch(Reference(uri=URI), run=None, report=ignore)
    source.is_down = True

    with pytest.raises(SourceUnavailable, match=r"A copy of 2024-05-17 .* checksum"):
        await cache.fetch(Reference(uri=URI), run=None, report=ignore)


async def test_a_record_that_cannot_be_read_is_no_dataset_and_is_replaced(
    cache: DirectoryDatasetCache, source: ScriptedSource, folder: Path
) -> None:
    reference = source.put(URI, CONTENT)
    await cache.fetch(reference, run=None, report=ignore)
    (folder / f"references/{reference.key}.json").write_bytes(b'{"uri": "cut o')

    assert list(await cache.list()) == []
    dataset = await cache.fetch(reference, run=None, report=ignore)
    assert Path(dataset.path).read_bytes() == CONTENT


async def test_who_waits_is_told_how_the_transfer_of_another_goes_on(
    folder: Path, source: ScriptedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transferring, "KEEP_SECONDS", 0.001)
    reference = source.put(URI, CONTENT)
    source.may_go_on = asyncio.Event()
    source.may_go_on.set()
    told: list[Progress] = []
    caches = [DirectoryDatasetCache(folder, {"test": source}, HastyClock()) for _ in range(2)]

    def stop(progress: Progress) -> None:
        if progress.done_bytes == 3000:
            assert source.may_go_on is not None
            source.may_go_on.clear()

    first = asyncio.create_task(caches[0].fetch(reference, run=None, report=stop))
    await source.begun.wait()
    second = asyncio.create_task(caches[1].fetch(reference, run=None, report=told.append))
    while not told or told[-1].done_bytes < 3000:
        await asyncio.sleep(0.001)
    source.may_go_on.set()
    await asyncio.gather(first, second)

    assert told[-1].total_bytes == len(CONTENT)
    assert len(source.reads) == 1


async def test_eviction_of_something_pinned_names_the_run(
    cache: DirectoryDatasetCache, source: ScriptedSource
) -> None:
    strange = RunId("../../etc/cron.d")
    dataset = await cache.fetch(source.put(URI, CONTENT), run=strange, report=ignore)

    assert list(await cache.pins()) == [strange]
    with pytest.raises(NotPossible, match=r"etc/cron\.d"):
        await cache.evict(dataset.key)
