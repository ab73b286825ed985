"""Archives are unpacked where all stays in its folder, and refused where it would not."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from tests.unit.dataset_cache.test_directory import Disk

from anubis.adapters.dataset_cache.directory import DirectoryDatasetCache, room, unpacking
from anubis.domain.dataset import Dataset, DatasetKind, Reference, checksum
from anubis.domain.errors import DatasetInvalid, StorageFull
from anubis.testing.contracts.dataset_cache import HastyClock, ScriptedSource, ignore

URI = "test://host/set.archive"
FILES = {"a.txt": b"a" * 3000, "deep/b.bin": os.urandom(5000), "empty": b""}


@pytest.fixture
def source() -> ScriptedSource:
    return ScriptedSource()


@pytest.fixture
def cache(folder: Path, source: ScriptedSource) -> DirectoryDatasetCache:
    return DirectoryDatasetCache(folder, {"test": source}, HastyClock())


def a_tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A tar of these, in this order, whether or not that makes sense."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:") as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def a_file(name: str, content: bytes = b"x", mode: int = 0o644) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    return member, content


def a_member(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


def a_link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return a_member(name, tarfile.SYMTYPE, target)


def a_zip(files: dict[str, bytes] | None = None, **modes: int) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (FILES if files is None else files).items():
            member = zipfile.ZipInfo(name)
            member.external_attr = modes.get(name, 0o100644) << 16
            archive.writestr(member, content)
    return packed.getvalue()


def damaged(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :]


TAR = a_tar(*(a_file(name, content) for name, content in FILES.items()))


async def _unpacked(
    cache: DirectoryDatasetCache, source: ScriptedSource, content: bytes
) -> Dataset:
    reference = source.put(URI, content)
    wanted = Reference(uri=URI, checksum=reference.checksum, unpack=True)
    return await cache.fetch(wanted, run=None, report=ignore)


@pytest.mark.parametrize(
    "pack",
    [bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.compress, lambda _: a_zip()],
    ids=["tar", "gz", "bz2", "xz", "zst", "zip"],
)
async def test_all_kinds_are_known_by_their_content_and_unpacked(
    cache: DirectoryDatasetCache, source: ScriptedSource, pack: Callable[[bytes], bytes]
) -> None:
    dataset = await _unpacked(cache, source, pack(TAR))

    root = Path(dataset.path)
    found = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
    assert {name: path.read_bytes() for name, path in found.items()} == FILES
    assert (dataset.kind, dataset.files, dataset.size_bytes) == (DatasetKind.DIRECTORY, 3, 8000)
    assert {stat.S_IMODE(path.stat().st_mode) for path in found.values()} == {0o444}
    assert await cache.verify(dataset.key)


async def test_the_same_archive_packed_and_unpacked_are_two_datasets(
    cache: DirectoryDatasetCache, source: ScriptedSource
) -> None:
    unpacked = await _unpacked(cache, source, TAR)
    packed = await cache.fetch(source.put(URI, TAR), run=None, report=ignore)

    assert Path(packed.path).read_bytes() == TAR
    assert unpacked.key != packed.key


async def test_programs_links_and_hard_links_stay_what_they_are(
    cache: DirectoryDatasetCache, source: ScriptedSource
) -> None:
    members = [
        a_member("./bin", tarfile.DIRTYPE),
        a_file("./bin/tool", b"#!/bin/sh\n", 0o755),
        a_link("bin/alias", "tool"),
        a_link("up", "./bin/../bin/tool"),
        a_member("bin/hard", tarfile.LNKTYPE, "./bin/tool"),
        a_member("nothing", tarfile.DIRTYPE),
    ]
    dataset = await _unpacked(cache, source, a_tar(*members))

    root = Path(dataset.path)
    assert stat.S_IMODE((root / "bin/tool").stat().st_mode) == 0o555
    assert (root / "bin/alias").read_bytes() == (root / "up").read_bytes() == b"#!/bin/sh\n"
    assert (root / "bin/hard").samefile(root / "bin/tool")
    assert list((root / "nothing").iterdir()) == []
    assert await cache.verify(dataset.key)


HARMFUL = {
    "a path up": a_tar(a_file("../out")),
    "a path up inside": a_tar(a_file("a/../../out")),
    "an absolute path": a_tar(a_file("/tmp/out")),
    "a link up": a_tar(a_link("l", "../../../out")),
    "an absolute link": a_tar(a_link("l", "/etc/passwd")),
    "a path through a link": a_tar(a_link("l", "."), a_file("l/out")),
    "a link up through a link": a_tar(a_link("b", "."), a_link("a", "b/../out")),
    "the same, the other way round": a_tar(a_link("a", "b/../out"), a_link("b", ".")),
    "a file over a link": a_tar(a_link("l", "x"), a_file("l")),
    "a link over a folder": a_tar(a_file("d/x"), a_link("d", ".")),
    "a folder below a file": a_tar(a_file("f"), a_file("f/x")),
    "a hard link out": a_tar(a_member("h", tarfile.LNKTYPE, "/etc/passwd")),
    "a hard link to a link": a_tar(a_link("l", "x"), a_member("h", tarfile.LNKTYPE, "l")),
    "a device": a_tar(a_member("d", tarfile.CHRTYPE)),
    "a pipe": a_tar(a_member("p", tarfile.FIFOTYPE)),
    "a zip with a path up": a_zip({"../out": b"x"}),
    "a zip with an absolute path": a_zip({"/out": b"x"}),
    "a zip with a link out": a_zip({"l": b"/etc/passwd"}, l=0o120777),
    "a zip with a pipe": a_zip({"p": b""}, p=0o010644),
    "nothing": a_tar(),
    "an empty zip": a_zip({}),
    "no archive": b"hello, world\n" * 100,
    "an empty file": b"",
    "a tar that is cut": TAR[:2000],
    "a tar with a damaged header": TAR[:3584] + b"\xff" * 512 + TAR[4096:],
    "a gzip that is cut": gzip.compress(TAR)[:-100],
    "a gzip of no tar": gzip.compress(b"hello" * 1000),
    "a bzip that is damaged": bz2.compress(TAR)[:50] + b"?" * 1000,
    "an xz that is cut": lzma.compress(TAR)[:-100],
    "a zst that is cut": zstandard.compress(TAR)[:-100],
    "a zip that is cut": a_zip()[:-40],
    "a zip with a damaged file": damaged(a_zip({"a": b"x" * 100}), at=32),
}


@pytest.mark.parametrize("content", HARMFUL.values(), ids=HARMFUL.keys())
async def test_what_is_harmful_or_damaged_is_refused_and_leaves_nothing(
    cache: DirectoryDatasetCache, source: ScriptedSource, content: bytes, tmp_path: Path
) -> None:
    with pytest.raises(DatasetInvalid, match=r"set\.archive"):
        await _unpacked(cache, source, content)

    assert list(await cache.list()) == []
    assert list((tmp_path / "datasets/partial").iterdir()) == []
    assert list((tmp_path / "datasets/objects").iterdir()) == []
    assert not list(tmp_path.rglob("out"))


async def test_a_header_of_endless_size_does_not_fill_the_memory(
    cache: DirectoryDatasetCache, source: ScriptedSource
) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 8 * 1024**3

    with pytest.raises(DatasetInvalid):
        await _unpacked(cache, source, header.tobuf() + b"\0" * 10_000)


@pytest.mark.parametrize("kind", ["zip", "gz"])
async def test_an_archive_that_swells_stops_before_the_disk_is_full(
    folder: Path, source: ScriptedSource, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(unpacking, "CHECK_BYTES", 10_000)
    monkeypatch.setattr(unpacking, "COPY_BYTES", 10_000)
    files = {f"{number}": bytes(10**6) for number in range(5)}
    tar = a_tar(*(a_file(name, content) for name, content in files.items()))
    content = a_zip(files) if kind == "zip" else gzip.compress(tar)

    def measure(_: Path) -> room.DiskSize:
        written = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        return Disk(f_blocks=10**6, f_bavail=10**6 - written)

    cache = DirectoryDatasetCache(folder, {"test": source}, HastyClock(), measure=measure)

    with pytest.raises(StorageFull):
        await _unpacked(cache, source, content)
    assert list((folder / "partial").iterdir()) == []


async def test_the_checksum_is_that_of_the_archive(
    cache: DirectoryDatasetCache, source: ScriptedSource
) -> None:
    source.put(URI, TAR)
    wrong = Reference(uri=URI, checksum=checksum("0" * 32), unpack=True)

    with pytest.raises(DatasetInvalid, match="md5"):
        await cache.fetch(wrong, run=None, report=ignore)


async def test_a_directory_cannot_be_unpacked(
    cache: DirectoryDatasetCache, source: ScriptedSource
) -> None:
    source.put("test://host/set/a", b"x")

    with pytest.raises(DatasetInvalid, match="expected an archive"):
        await cache.fetch(Reference(uri="test://host/set/", unpack=True), run=None, report=ignore)


async def test_what_an_archive_holds_counts_against_the_budget(
    folder: Path, source: ScriptedSource
) -> None:
    cache = DirectoryDatasetCache(folder, {"test": source}, HastyClock(), budget=20_000)
    small = Reference(uri="test://host/small")
    source.put(small.uri, b"s" * 5000)
    await cache.fetch(small, run=None, report=ignore)
    fits, bursts = Reference(uri=URI, unpack=True), Reference(uri=f"{URI}.2", unpack=True)
    source.put(fits.uri, gzip.compress(a_tar(a_file("x", bytes(19_000)))))
    source.put(bursts.uri, gzip.compress(a_tar(a_file("x", bytes(25_000)))))

    with pytest.raises(StorageFull, match="budget"):
        await cache.fetch(bursts, run=None, report=ignore)
    assert [one.key for one in await cache.list()] == [small.key]

    await cache.fetch(fits, run=None, report=ignore)
    assert [one.key for one in await cache.list()] == [fits.key]


@pytest.mark.parametrize(
    "content", [a_tar(a_file("/".join(3000 * ["d"]))), a_tar(a_link("l", 4096 * "x"))]
)
async def test_names_that_no_disk_can_hold_are_the_fault_of_the_archive(
    cache: DirectoryDatasetCache, source: ScriptedSource, folder: Path, content: bytes
) -> None:
    source.put(URI, content)

    with pytest.raises(DatasetInvalid, match="too long") as error:
        await cache.fetch(Reference(uri=URI, unpack=True), run=None, report=ignore)
    assert len(str(error.value)) < 500
    assert list((folder / "partial").iterdir()) == []
