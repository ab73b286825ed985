"""Unpack an archive that came from anywhere: nothing leaves its folder, and nothing fills the disk.

Nothing is ever written through a link: no path may lead through one. Where links lead is looked at
when all is there, by following them. What is no file, folder or link is refused.
"""

from __future__ import annotations

import dataclasses
import errno
import lzma
import os
import tarfile
import threading
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from anubis.adapters.dataset_cache.directory import layout
from anubis.adapters.dataset_cache.directory.archives import (
    Member,
    MemberKind,
    is_zip,
    tar_members,
    zip_members,
)
from anubis.adapters.dataset_cache.directory.room import Room
from anubis.domain.errors import DatasetInvalid

COPY_BYTES: Final = 1024**2
CHECK_BYTES: Final = 64 * 1024**2
"""How often the disk is looked at: what is written between two looks stays below the reserve."""

CHECK_MEMBERS: Final = 1000

MOST_MEMBERS: Final = 10_000_000
"""More than any dataset of files has; a bound for an archive that is nothing but names."""

_UNWRITABLE: Final = frozenset({errno.ENAMETOOLONG, errno.ELOOP})
"""What no disk can hold; the fault is the archive's."""

_UNREADABLE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError)


@dataclasses.dataclass(kw_only=True, slots=True)
class Unpacking:
    """One archive on its way into a folder. Runs in a thread; ``stop`` may come from any."""

    archive: Path
    target: Path
    name: str  #: for people
    room: Room
    make_room: Callable[[int], None]
    _places: dict[str, MemberKind] = dataclasses.field(default_factory=dict)
    _written: int = 0
    _unchecked: int = 0
    _is_stopped: threading.Event = dataclasses.field(default_factory=threading.Event)

    def run(self) -> None:
        """Unpack all of it. Raises DatasetInvalid, StorageFull."""
        self.target.mkdir(mode=0o700, parents=True)
        try:
            with self.archive.open("rb") as file:
                if is_zip(file):
                    self.make_room(self._size_of_zip(file))
                    members = zip_members(file)
                else:
                    members = tar_members(file)
                for member in members:
                    self._write(member)
        except (*_UNREADABLE, ValueError, NotImplementedError, RuntimeError) as error:
            # ValueError: numbers that are none. RuntimeError: zipfile about encrypted files.
            raise self._refused(f"it cannot be read ({str(error)[:200]})") from None
        except OSError as error:
            if error.errno in _UNWRITABLE:
                raise self._refused("it has names or links that are too long") from None
            if error.errno is not None:
                raise
            # gzip and bz2 say so of content that is none of theirs
            raise self._refused(f"it cannot be read ({str(error)[:200]})") from None
        if not self._places:
            raise self._refused("nothing is in it")
        self._check_links()

    def stop(self) -> None:
        """Have ``run`` end soon."""
        self._is_stopped.set()

    def _size_of_zip(self, file: IO[bytes]) -> int:
        with zipfile.ZipFile(file) as archive:
            return sum(member.file_size for member in archive.infolist())

    def _write(self, member: Member) -> None:
        name = member.path
        if name == "." and member.kind is MemberKind.FOLDER:
            return
        self._check(member)
        self._places[name] = member.kind
        place = self.target / name
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if member.kind is MemberKind.FOLDER:
            place.mkdir(mode=0o700, exist_ok=True)
        elif member.kind is MemberKind.LINK:
            place.symlink_to(member.target)
        elif member.kind is MemberKind.HARD_LINK:
            place.hardlink_to(self.target / member.target)
        else:
            self._write_file(member, place)

    def _check(self, member: Member) -> None:
        """Refuse what leads elsewhere. All members before this one were written as they are."""
        name = member.path
        if not layout.is_path(name):
            raise self._refused(f"{name[:200]!r} leads out of its folder, or is no path")
        for parent in layout.parents(name):
            if self._places.setdefault(parent, MemberKind.FOLDER) is not MemberKind.FOLDER:
                raise self._refused(f"{name[:200]!r} lies behind something that is no folder")
        before = self._places.get(name)
        if before is not None and not (before is member.kind is MemberKind.FOLDER):
            raise self._refused(f"{name[:200]!r} is there twice")
        if member.kind is MemberKind.OTHER:
            raise self._refused(f"{name[:200]!r} is a device, a pipe or something like it")
        if (
            member.kind is MemberKind.HARD_LINK
            and self._places.get(member.target) is not MemberKind.FILE
        ):
            raise self._refused(f"{name[:200]!r} is a link to no file that comes before it")
        if len(self._places) > MOST_MEMBERS:
            raise self._refused(f"it holds more than {MOST_MEMBERS:,} files")
        if len(self._places) % CHECK_MEMBERS == 0:
            self.room.demand_reserve(self._written)

    def _write_file(self, member: Member, place: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        rights = 0o700 if member.is_program else 0o600
        with member.open() as content, os.fdopen(os.open(place, flags, rights), "wb") as copy:
            while piece := content.read(COPY_BYTES):
                if self._is_stopped.is_set():
                    raise self._refused("unpacking was stopped")
                copy.write(piece)
                self._written += len(piece)
                self._unchecked += len(piece)
                if self._unchecked >= CHECK_BYTES:
                    self._unchecked = 0
                    self.room.demand_reserve(self._written)

    def _check_links(self) -> None:
        root = self.target.resolve()
        for name, kind in self._places.items():
            if kind is MemberKind.LINK:
                try:
                    end = Path(os.path.realpath(self.target / name))
                except OSError:
                    raise self._refused(
                        f"{name[:200]!r} is a link that cannot be followed"
                    ) from None
                if not end.is_relative_to(root) or (self.target / name).readlink().is_absolute():
                    raise self._refused(f"{name[:200]!r} is a link out of the archive's folder")

    def _refused(self, reason: str) -> DatasetInvalid:
        return DatasetInvalid(f"{self.name}: as an archive: {reason}")
