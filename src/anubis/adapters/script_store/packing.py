"""Make an archive of a file or folder: the same content gives the same bytes, and the same name.

Not in it are the things that differ between two checkouts of the same code: times, owners, rights
other than whether a file is executable, the order in which a folder lists its files, and what
version control and tools keep beside the code (``LEFT_OUT``).

What the store would refuse is refused here, before anything is sent.

An archive that was packed before, and is called by its fingerprint, is taken as it is: packed once
more it would be something else. That needs no room on the disk, which not every pod has.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import stat
import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import IO, Final

from anubis.adapters.script_store import inspecting, naming
from anubis.domain.errors import UserError
from anubis.ports.script_store import ScriptInbox

LEFT_OUT: Final = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        "__pycache__",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".ipynb_checkpoints",
        ".DS_Store",
    }
)
"""Names that are not packed, wherever they are below the folder that was named."""

_PART: Final = 1024**2
_EXECUTABLE, _PLAIN, _LINK = 0o755, 0o644, 0o777


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Archive:
    """An archive in an open file, which whoever had it made closes."""

    name: str  #: as stores know it
    size: int  #: bytes
    files: int  #: how many of them, without folders and links
    content: IO[bytes]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The content from its start; may be asked for again."""
        self.content.seek(0)
        while part := self.content.read(_PART):
            yield part

    def close(self) -> None:
        """Remove it, if it was packed here."""
        self.content.close()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Brought:
    """An archive that is now where it is needed."""

    name: str
    size: int  #: bytes
    files: int
    was_there: bool  #: nothing had to be sent


async def bring(path: str, inbox: ScriptInbox) -> Brought:
    """Pack a file or a folder, and put it into an inbox that has it not. Raises as ``pack``."""
    with contextlib.closing(await asyncio.to_thread(pack, path)) as archive:
        was_there = await inbox.has(archive.name)
        if not was_there:
            await inbox.put(archive.name, archive)
        return Brought(
            name=archive.name, size=archive.size, files=archive.files, was_there=was_there
        )


def pack(path: str) -> Archive:
    """Pack a file or a folder; in the archive it has its own name, and nothing is beside it.

    Raises UserError for what is not there, cannot be read, is too much, or is no file, folder or
    link that stays within the folder.
    """
    if not path:  # a shell's unset variable; the folder that somebody happens to be in is not meant
        raise UserError("code: found '', expected the path of a file or folder")
    is_packed = naming.is_safe(Path(path).name) and Path(path).is_file()
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(_opened(path) if is_packed else _packed(path))
        archive = _checked(file, _shown(path))
        if is_packed:
            naming.demand_name(Path(path).name, archive.name)
        stack.pop_all()  # from now on it is the caller's
        return archive


def _packed(path: str) -> IO[bytes]:
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile(prefix="anubis-script-"))
        _Packing(path, file).pack()
        stack.pop_all()
        return file


def _opened(path: str) -> IO[bytes]:
    try:
        return _readable(Path(path))
    except OSError as error:
        raise UserError(f"{_shown(path)}: it cannot be read: {error.strerror}") from error


def _checked(file: IO[bytes], shown: str) -> Archive:
    size = file.seek(0, os.SEEK_END)
    inspecting.demand_size(shown, size)
    file.seek(0)
    members = inspecting.members(file, shown)
    files = sum(member.isreg() for member in members)
    return Archive(name=_name(file), size=size, files=files, content=file)


def _name(file: IO[bytes]) -> str:
    found = naming.fresh()
    file.seek(0)
    while part := file.read(_PART):
        found.update(part)
    return naming.of(found)


def _readable(place: Path) -> IO[bytes]:
    # Without blocking: what was a file a moment ago may be a pipe by now.
    return os.fdopen(os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


class _Packing:
    """One archive in the making."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        # Without following links: what is named by a link has the name of the link.
        self._root = Path(os.path.abspath(path))  # noqa: PTH100 - pathlib would follow or keep '..'
        self._path = path  #: as the user wrote it, for messages
        self._file = file
        self._members = 0
        self._bytes = 0

    def pack(self) -> None:
        """Write the whole archive."""
        if not self._root.name:
            raise UserError(f"{self._path}: found the root of all files, expected a folder of code")
        with tarfile.open(
            fileobj=self._file,
            mode="w:",
            format=tarfile.GNU_FORMAT,  # no times of files in it, and any name
            encoding="utf-8",
            errors="surrogateescape",
        ) as archive:
            self._add(archive, self._root, self._root.name, follow=True)

    def _add(
        self, archive: tarfile.TarFile, place: Path, name: str, *, follow: bool = False
    ) -> None:
        with self._reading(name):
            mode = place.stat(follow_symlinks=follow).st_mode
            self._count(name)
            if stat.S_ISDIR(mode):
                archive.addfile(_member(name, tarfile.DIRTYPE, _EXECUTABLE))
                for entry in _entries(place):
                    self._add(archive, place / entry, f"{name}/{entry}")
            elif stat.S_ISLNK(mode):
                link = _member(name, tarfile.SYMTYPE, _LINK)
                link.linkname = os.readlink(place)  # noqa: PTH115 - a Path would drop './' from it
                archive.addfile(link)
            elif stat.S_ISREG(mode):
                self._add_file(archive, place, name)
            else:
                found = f"{self._written(name)}: found {_kind(mode)}"
                raise UserError(f"{found}, expected files, folders and links; move it elsewhere")

    def _add_file(self, archive: tarfile.TarFile, place: Path, name: str) -> None:
        with _readable(place) as file:
            found = os.fstat(file.fileno())
            rights = _EXECUTABLE if found.st_mode & stat.S_IXUSR else _PLAIN
            member = _member(name, tarfile.REGTYPE, rights)
            member.size = found.st_size
            self._demand_room(found.st_size)
            try:
                archive.addfile(member, file)
            except OSError as error:
                if error.errno is not None:
                    raise
                shown = self._written(name)  # tarfile's own word for a file that ended too early
                raise UserError(f"{shown}: it changed while it was packed; try again") from error

    def _count(self, name: str) -> None:
        self._members += 1
        if len(os.fsencode(name)) > inspecting.LONGEST_PATH:
            raise UserError(
                f"{self._path}: found a path of more than {inspecting.LONGEST_PATH} bytes, "
                f"expected shorter ones: {self._written(name)[:100]}…"
            )
        if self._members > inspecting.MOST_MEMBERS:
            raise UserError(
                f"{self._path}: found more than {inspecting.MOST_MEMBERS:,} files, expected code; "
                f"is there a virtual environment or data in it, near {self._written(name)}?"
            )

    def _demand_room(self, size: int) -> None:
        self._bytes += size
        if self._bytes > inspecting.MOST_PACKED:
            raise UserError(
                f"{self._path}: found more than {inspecting.MOST_PACKED:,} bytes, expected code; "
                "data belongs in data.sources"
            )

    @contextlib.contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """The user's files, and the words for those that cannot be read."""
        try:
            yield
        except FileNotFoundError as error:
            shown = self._written(name)
            raise UserError(f"{shown}: found nothing, expected a file or folder") from error
        except OSError as error:
            shown = self._written(name)
            raise UserError(f"{shown}: it cannot be packed: {error.strerror}") from error

    def _written(self, name: str) -> str:
        """Where a member comes from, as the user would write it."""
        _, _, below = name.partition("/")
        return _shown(str(Path(self._path) / below))


def _entries(folder: Path) -> list[str]:
    """What is in a folder, always in the same order, whatever the language of the machine."""
    names = os.listdir(folder)  # noqa: PTH208 - names are wanted, not paths
    return sorted((one for one in names if one not in LEFT_OUT), key=os.fsencode)


def _member(name: str, kind: bytes, rights: int) -> tarfile.TarInfo:
    """A member without time and owner: ``TarInfo`` has zeros for them."""
    member = tarfile.TarInfo(name)
    member.type, member.mode = kind, rights
    return member


def _kind(mode: int) -> str:
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a pipe" if stat.S_ISFIFO(mode) else "a device"


def _shown(path: str) -> str:
    """A path as text: names of files may hold what is no character."""
    return path.encode("utf-8", "replace").decode()
