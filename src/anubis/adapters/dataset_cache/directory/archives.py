"""The members of tar archives, however compressed, and of zip archives, in one form.

The kind of an archive is seen from its first bytes, never from its name.
"""

from __future__ import annotations

import bz2
import dataclasses
import enum
import gzip
import io
import lzma
import posixpath
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from typing import IO, Final

MOST_AT_ONCE: Final = 1024**2
"""Bytes. ``tarfile`` would read a header of any size into memory; long names take some hundred."""

LONGEST_LINK: Final = 4096


class MemberKind(enum.Enum):
    """What a member is."""

    FILE = enum.auto()
    FOLDER = enum.auto()
    LINK = enum.auto()
    HARD_LINK = enum.auto()
    OTHER = enum.auto()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One entry of an archive. Its content must be read before the next one is asked for."""

    path: str  #: below the folder, without ``./`` and doubled slashes
    kind: MemberKind
    target: str = ""  #: of a link; of a hard link, below the folder
    is_program: bool = False
    open: Callable[[], IO[bytes]]


def is_zip(file: IO[bytes]) -> bool:
    """Whether a file begins as a zip archive does, an empty one too."""
    return _start(file).startswith((b"PK\x03\x04", b"PK\x05\x06"))


def tar_members(file: IO[bytes]) -> Iterator[Member]:
    """In order of the archive. Raises tarfile.ReadError also where it is damaged in the middle."""
    content = _Bounded(_decompressed(file))
    with tarfile.open(fileobj=content, mode="r:") as archive:
        while (member := archive.next()) is not None:
            yield _tar_member(archive, member)
            archive.members = []  # type: ignore[attr-defined] # millions would stay in memory
        # tarfile takes a damaged header for the end; a real end is a block of zeros, or nothing.
        if content.last not in {b"", bytes(tarfile.BLOCKSIZE)}:
            raise tarfile.ReadError("a header in the middle is damaged")


def zip_members(file: IO[bytes]) -> Iterator[Member]:
    """In order of its directory."""
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            yield _zip_member(archive, member)


def _start(file: IO[bytes]) -> bytes:
    file.seek(0)
    start = file.read(8)
    file.seek(0)
    return start


def _decompressed(file: IO[bytes]) -> IO[bytes]:
    start = _start(file)
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)  # type: ignore[return-value] # all that tarfile needs
    if start.startswith(b"BZh"):
        return bz2.BZ2File(file)
    if start.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMAFile(file)
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        import zstandard  # costs a moment, and few archives need it

        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return file


class _Bounded(io.BufferedIOBase):
    """The decompressed archive, read in sips and only ever forwards."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._position = 0
        self.last = b""  #: what was read last

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= MOST_AT_ONCE:
            raise tarfile.ReadError(f"a header of more than {MOST_AT_ONCE} bytes")
        parts = []
        while size and (part := self._file.read(size)):
            parts.append(part)
            size -= len(part)
            self._position += len(part)
        self.last = b"".join(parts)
        return self.last

    def seek(self, offset: int, whence: int = 0, /) -> int:
        if whence != 0 or offset < self._position:
            raise tarfile.ReadError("its parts are not in order")
        while self._position < offset:
            if not self.read(min(MOST_AT_ONCE, offset - self._position)):
                break
        return self._position

    def tell(self) -> int:
        return self._position


def _tar_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Member:
    def content() -> IO[bytes]:
        file = archive.extractfile(member)
        assert file is not None, "only files are opened"
        return file

    is_hard = member.islnk()
    return Member(
        path=_plain(member.name),
        kind=_tar_kind(member),
        target=_plain(member.linkname) if is_hard else member.linkname,
        is_program=bool(member.mode & stat.S_IXUSR),
        open=content,
    )


def _tar_kind(member: tarfile.TarInfo) -> MemberKind:
    if member.isreg():
        return MemberKind.FILE
    if member.isdir():
        return MemberKind.FOLDER
    if member.issym():
        return MemberKind.LINK
    return MemberKind.HARD_LINK if member.islnk() else MemberKind.OTHER


def _zip_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Member:
    mode = member.external_attr >> 16  # zero where the archive was not made on Unix
    kind = _zip_kind(member, mode)
    target = ""
    if kind is MemberKind.LINK:
        with archive.open(member) as file:
            target = file.read(LONGEST_LINK).decode("utf-8", "surrogateescape")
    return Member(
        path=_plain(member.filename),
        kind=kind,
        target=target,
        is_program=bool(mode & stat.S_IXUSR),
        open=lambda: archive.open(member),
    )


def _zip_kind(member: zipfile.ZipInfo, mode: int) -> MemberKind:
    if member.is_dir():
        return MemberKind.FOLDER
    if stat.S_ISLNK(mode):
        return MemberKind.LINK
    return MemberKind.FILE if stat.S_IFMT(mode) in {0, stat.S_IFREG} else MemberKind.OTHER


def _plain(path: str) -> str:
    """Without ``./`` and doubled slashes. What leads up or away stays as it is, to be refused."""
    if path.startswith("/") or ".." in path.split("/"):
        return f"../{path}"
    return posixpath.normpath(path)
