"""What every script store must do, above all what it must refuse.

Subclass ``ScriptStoreContract`` and give it a fixture ``store`` with a fresh, empty store, and
a fixture ``again`` with a store that keeps the same archives, as after a restart (it may be the
same), and a fixture ``narrow`` with a fresh store for 15,000 bytes. All have the time of ``clock``.
"""

# ruff: noqa: D102 - the name of a test is its claim, in a sentence

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import io
import tarfile
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from anubis.domain.errors import TooMuch, UserError
from anubis.ports.script_store import ScriptStore
from anubis.testing.clock import NOON, ManualClock

DAY = timedelta(days=1)
NARROW = 15_000
"""Bytes in which one small archive fits, which has 10,240, and not two."""

Member = tuple[tarfile.TarInfo, bytes]


@dataclasses.dataclass(frozen=True, slots=True)
class Archive:
    """The bytes of an archive, under the name they must have."""

    content: bytes

    @property
    def name(self) -> str:
        """As the original client names it."""
        return f"{hashlib.sha1(self.content, usedforsecurity=False).hexdigest()}.tar"

    async def parts(self, size: int = 1000) -> AsyncIterator[bytes]:
        """The content as it comes over a wire."""
        for start in range(0, len(self.content), size):
            yield self.content[start : start + size]


def a_file(name: str = "src/main.py", content: bytes = b"print('hello')\n") -> Member:
    """A file."""
    member = tarfile.TarInfo(name)
    member.size = len(content)
    return member, content


def a_member(
    name: str, kind: bytes, linkname: str = "", headers: dict[str, str] | None = None
) -> Member:
    """Something that is no ordinary file."""
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = linkname
    member.pax_headers = headers or {}
    return member, b""


def a_link(name: str, target: str) -> Member:
    """A symbolic link."""
    return a_member(name, tarfile.SYMTYPE, target)


def an_archive(*members: Member) -> Archive:
    """An archive of these, in this order, whether or not that makes sense."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:", format=tarfile.PAX_FORMAT) as archive:
        for member, data in members:
            archive.addfile(member, io.BytesIO(data))
    return Archive(content.getvalue())


def many_files(count: int) -> Archive:
    """An archive of so many empty files."""
    return an_archive(*(a_file(f"{number}", b"") for number in range(count)))


def with_size(size: int) -> Archive:
    """An archive whose only file claims to be so large; it is cut off, of course."""
    member, _ = a_file("huge", b"")
    member.size = size
    return Archive(member.tobuf(tarfile.GNU_FORMAT) + bytes(10 * 512))


def with_negative_size() -> Archive:
    """An archive whose second member sends a naive reader back to the first, forever."""
    first, _ = a_file("first", b"")
    second = bytearray(a_file("second", b"")[0].tobuf(tarfile.GNU_FORMAT))
    second[124:136] = (-1024).to_bytes(12, "big", signed=True)
    second[148:156] = b" " * 8
    second[148:156] = f"{sum(second[:512]):06o}\0 ".encode()
    return Archive(first.tobuf(tarfile.GNU_FORMAT) + bytes(second) + bytes(1024))


def with_large_header(size: int) -> Archive:
    """An archive with a header about the next member that is so large."""
    header, _ = a_file("header", b"")
    header.type, header.size = tarfile.XHDTYPE, size
    return Archive(header.tobuf(tarfile.GNU_FORMAT) + bytes(size))


def with_endless_headers(count: int) -> Archive:
    """An archive of headers about headers about headers."""
    header, _ = a_file("header", b"")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 1
    return Archive((header.tobuf(tarfile.GNU_FORMAT) + bytes(512)) * count)


ATTACKS: dict[str, Callable[[], Archive]] = {
    "a path that climbs out": lambda: an_archive(a_file("../evil")),
    "a path that climbs out later": lambda: an_archive(a_file("a/../../evil")),
    "an absolute path": lambda: an_archive(a_file("/etc/evil")),
    "a path with two slashes in front": lambda: an_archive(a_file("//etc/evil")),
    "a file without a name": lambda: an_archive(a_file(".")),
    "a link to an absolute path": lambda: an_archive(a_link("evil", "/etc/passwd")),
    "a link that climbs out": lambda: an_archive(a_link("a/evil", "../../etc")),
    "a link that climbs out and comes back": lambda: an_archive(a_link("evil", "../here/a")),
    "a link to the folder above": lambda: an_archive(a_link("evil", "..")),
    "a link to nowhere": lambda: an_archive(a_link("evil", "")),
    "a file behind a link": lambda: an_archive(a_link("a", "b"), a_file("a/evil")),
    "a file behind a link that comes later": lambda: an_archive(a_file("a/x"), a_link("a", "b")),
    "a link through a link": lambda: an_archive(
        a_link("d/e/root", "../.."), a_link("evil", "d/e/root/..")
    ),
    "a link that becomes a folder": lambda: an_archive(
        a_link("a", "b"), a_member("a", tarfile.DIRTYPE)
    ),
    "a file behind a file": lambda: an_archive(a_file("a"), a_file("a/b")),
    "a hard link out": lambda: an_archive(a_member("evil", tarfile.LNKTYPE, "../../etc/passwd")),
    "an absolute hard link": lambda: an_archive(a_member("evil", tarfile.LNKTYPE, "/etc/passwd")),
    "a hard link to a link": lambda: an_archive(
        a_link("a", "b"), a_member("evil", tarfile.LNKTYPE, "a")
    ),
    "a hard link to what comes later": lambda: an_archive(
        a_member("evil", tarfile.LNKTYPE, "a"), a_file("a")
    ),
    "a hard link to itself": lambda: an_archive(a_member("evil", tarfile.LNKTYPE, "evil")),
    "a pipe": lambda: an_archive(a_member("evil", tarfile.FIFOTYPE)),
    "a character device": lambda: an_archive(a_member("evil", tarfile.CHRTYPE)),
    "a block device": lambda: an_archive(a_member("evil", tarfile.BLKTYPE)),
    "an unknown kind": lambda: an_archive(a_member("evil", b"Z")),
    "a sparse file": lambda: an_archive(
        a_member("evil", tarfile.REGTYPE, headers={"GNU.sparse.size": "1000000000000"})
    ),
    "a sparse file of another kind": lambda: an_archive(
        a_member(
            "evil",
            tarfile.REGTYPE,
            headers={
                "GNU.sparse.major": "0",
                "GNU.sparse.minor": "1",
                "GNU.sparse.map": "0,1000000000000",
                "GNU.sparse.realsize": "1000000000000",
            },
        )
    ),
    "too many files": lambda: many_files(10_001),
    "too much in it": lambda: with_size(1024**3 + 1),
    "a negative size": with_negative_size,
    "a very large header": lambda: with_large_header(2 * 1024**2),
    "headers without end": lambda: with_endless_headers(3_000),
    "a very long path": lambda: an_archive(a_file("a/" * 600 + "b")),
    "a very long name": lambda: an_archive(a_file("b" * 256)),
    "a cut-off archive": lambda: Archive(an_archive(a_file("a", bytes(5000))).content[:2000]),
    "no archive": lambda: Archive(b"#!/bin/sh\necho I am no archive\n" * 100),
    "a compressed archive": lambda: Archive(bytes.fromhex("1f8b0800") + bytes(1000)),
    "nothing": lambda: Archive(b""),
}
"""What a store must refuse, by what it tries."""

ILLEGAL = ("", "x.tar", "../" + "a" * 40 + ".tar", "A" * 40 + ".tar", "a" * 40, "a" * 40 + ".tar\n")


class ScriptStoreContract:
    """Inherit from this."""

    @pytest.fixture
    def clock(self) -> ManualClock:
        """The time of the stores."""
        return ManualClock()

    async def test_an_archive_is_there_once_it_was_put(
        self, store: ScriptStore, again: ScriptStore
    ) -> None:
        archive = an_archive(a_file())
        before = await store.has(archive.name)
        await store.put(archive.name, archive.parts())

        assert not before
        assert await store.has(archive.name)
        assert await again.has(archive.name)

    async def test_an_archive_comes_out_as_it_went_in(
        self, store: ScriptStore, tmp_path: Path
    ) -> None:
        archive = an_archive(
            a_member("src", tarfile.DIRTYPE),
            a_file("src/main.py", b"print()\n" * 1000),
            a_file("./src//deep/er/data.bin", bytes(range(256))),
            a_link("src/now", "main.py"),
            a_link("src/deep/er/up", "../../now"),
            a_member("twin.py", tarfile.LNKTYPE, "src/main.py"),
            a_file("src/größe", b""),
        )
        await store.put(archive.name, archive.parts())
        folder = _new(tmp_path)
        await store.unpack(archive.name, str(folder))

        assert (folder / "src/main.py").read_bytes() == b"print()\n" * 1000
        assert (folder / "src/deep/er/data.bin").read_bytes() == bytes(range(256))
        assert (folder / "src/deep/er/up").read_bytes() == b"print()\n" * 1000
        assert (folder / "twin.py").read_bytes() == b"print()\n" * 1000
        assert (folder / "src/größe").read_bytes() == b""

    async def test_everything_may_be_changed_and_executed_by_its_owner(
        self, store: ScriptStore, tmp_path: Path
    ) -> None:
        member, content = a_file("src/run.sh")
        member.mode = 0o4000
        archive = an_archive((member, content))
        await store.put(archive.name, archive.parts())
        folder = _new(tmp_path)
        await store.unpack(archive.name, str(folder))

        assert (folder / "src/run.sh").stat().st_mode & 0o7777 == 0o700
        assert (folder / "src").stat().st_mode & 0o700 == 0o700

    async def test_a_file_that_is_there_twice_has_its_later_content(
        self, store: ScriptStore, tmp_path: Path
    ) -> None:
        archive = an_archive(a_file("a", b"old"), a_file("./a", b"new"))
        await store.put(archive.name, archive.parts())
        folder = _new(tmp_path)
        await store.unpack(archive.name, str(folder))

        assert (folder / "a").read_bytes() == b"new"

    async def test_an_archive_may_be_put_and_unpacked_again(
        self, store: ScriptStore, again: ScriptStore, tmp_path: Path
    ) -> None:
        archive = an_archive(a_file())
        await store.put(archive.name, archive.parts())
        await again.put(archive.name, archive.parts(7))
        for number in (1, 2):
            folder = _new(tmp_path, f"{number}")
            await again.unpack(archive.name, str(folder))
            assert (folder / "src/main.py").exists()

    async def test_an_archive_without_files_is_one(
        self, store: ScriptStore, tmp_path: Path
    ) -> None:
        archive = an_archive()
        await store.put(archive.name, archive.parts())
        await store.unpack(archive.name, str(_new(tmp_path)))

        assert list(_new(tmp_path).iterdir()) == []

    @pytest.mark.parametrize("attack", ATTACKS)
    async def test_what_could_do_harm_is_refused_and_not_kept(
        self, store: ScriptStore, attack: str
    ) -> None:
        archive = ATTACKS[attack]()

        with pytest.raises(UserError, match=archive.name):
            await store.put(archive.name, archive.parts(100_000))

        assert not await store.has(archive.name)

    async def test_an_archive_may_be_named_by_its_sha_256(
        self, store: ScriptStore, tmp_path: Path
    ) -> None:
        archive = an_archive(a_file())
        name = f"{hashlib.sha256(archive.content).hexdigest()}.tar"
        forged = an_archive(a_file(content=b"other"))

        with pytest.raises(UserError, match="must be called"):
            await store.put(name, forged.parts())
        await store.put(name, archive.parts())
        await store.unpack(name, str(tmp_path))

        assert (tmp_path / "src" / "main.py").is_file()

    @pytest.mark.parametrize("name", ILLEGAL)
    async def test_a_name_that_is_no_digest_is_refused(
        self, store: ScriptStore, tmp_path: Path, name: str
    ) -> None:
        with pytest.raises(UserError, match="expected the SHA-256"):
            await store.put(name, an_archive(a_file()).parts())
        with pytest.raises(UserError, match="expected the SHA-256"):
            await store.unpack(name, str(tmp_path))

        assert not await store.has(name)

    async def test_content_that_does_not_belong_to_the_name_is_refused(
        self, store: ScriptStore
    ) -> None:
        name = an_archive(a_file(content=b"one")).name

        with pytest.raises(UserError, match="changed or cut off"):
            await store.put(name, an_archive(a_file(content=b"other")).parts())

        assert not await store.has(name)

    async def test_an_upload_without_end_is_stopped(self, store: ScriptStore) -> None:
        sent = 0

        async def endless() -> AsyncIterator[bytes]:
            nonlocal sent
            while True:
                sent += 16 * 1024**2
                yield bytes(16 * 1024**2)

        with pytest.raises(UserError, match="268,435,456 bytes"):
            await store.put("a" * 40 + ".tar", endless())

        assert sent < 300 * 1024**2

    async def test_an_upload_that_breaks_off_leaves_nothing(self, store: ScriptStore) -> None:
        archive = an_archive(a_file())

        async def broken() -> AsyncIterator[bytes]:
            yield archive.content[:600]
            raise ConnectionResetError

        with pytest.raises(ConnectionResetError):
            await store.put(archive.name, broken())

        assert not await store.has(archive.name)

    async def test_an_archive_that_is_not_there_is_named(
        self, store: ScriptStore, tmp_path: Path
    ) -> None:
        with pytest.raises(UserError, match=r"a{40}\.tar is not here"):
            await store.unpack("a" * 40 + ".tar", str(tmp_path))

    async def test_an_archive_can_be_read_as_a_whole(self, store: ScriptStore) -> None:
        archive = an_archive(a_file())
        await store.put(archive.name, archive.parts())
        content = b"".join([part async for part in archive.parts()])

        assert await store.read(archive.name, most=len(content)) == content
        with pytest.raises(TooMuch, match=r"put large files into the image"):
            await store.read(archive.name, most=len(content) - 1)
        with pytest.raises(UserError, match=r"a{40}\.tar is not here"):
            await store.read("a" * 40 + ".tar", most=1)

    async def test_an_archive_that_nobody_uses_is_forgotten(
        self, store: ScriptStore, clock: ManualClock, tmp_path: Path
    ) -> None:
        archive = an_archive(a_file())
        await store.put(archive.name, archive.parts())
        clock.advance(DAY)

        assert await store.forget_unused(NOON) == 0
        assert await store.forget_unused(clock.now()) == 1
        assert not await store.has(archive.name)
        with pytest.raises(UserError, match="long disuse"):
            await store.unpack(archive.name, str(_new(tmp_path)))
        assert await store.forget_unused(clock.now() + DAY) == 0

    @pytest.mark.parametrize("use", ["asked for", "put again", "unpacked"])
    async def test_an_archive_that_is_used_stays(
        self, store: ScriptStore, clock: ManualClock, tmp_path: Path, use: str
    ) -> None:
        archive = an_archive(a_file())
        await store.put(archive.name, archive.parts())
        clock.advance(DAY)
        if use == "asked for":
            assert await store.has(archive.name)
        elif use == "put again":
            await store.put(archive.name, archive.parts())
        else:
            await store.unpack(archive.name, str(_new(tmp_path)))

        assert await store.forget_unused(clock.now()) == 0
        assert await store.has(archive.name)

    async def test_archives_have_no_more_room_together_than_they_may(
        self, narrow: ScriptStore, clock: ManualClock
    ) -> None:
        first, second = an_archive(a_file("a")), an_archive(a_file("b"))
        await narrow.put(first.name, first.parts())

        with pytest.raises(TooMuch, match=r"10,240 bytes, and may take 15,000\..*SCRIPTS_SIZE"):
            await narrow.put(second.name, second.parts())
        assert not await narrow.has(second.name)
        await narrow.put(first.name, first.parts())  # it takes no more than it did

        clock.advance(DAY)
        await narrow.forget_unused(clock.now())
        await narrow.put(second.name, second.parts())
        assert await narrow.has(second.name)

    async def test_two_archives_do_not_take_the_last_room_together(
        self, narrow: ScriptStore
    ) -> None:
        archives = [an_archive(a_file("a")), an_archive(a_file("b"))]
        puts = (narrow.put(archive.name, archive.parts()) for archive in archives)
        answers = await asyncio.gather(*puts, return_exceptions=True)

        assert [type(answer) for answer in answers if answer is not None] == [TooMuch]


def _new(tmp_path: Path, name: str = "unpacked") -> Path:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    return folder
