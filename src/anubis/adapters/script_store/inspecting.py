"""Look through an archive before anything of it is unpacked, and refuse what could do harm.

An archive comes from a stranger. What is accepted holds only files, folders and links, all of which
stay inside, and few and small enough to be unpacked. The headers alone are read: no content.

Links are the difficult part. A path that goes through a link is refused, and so is a link whose
target does: then what a path says letter by letter is where it really leads.
"""

from __future__ import annotations

import io
import posixpath
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Final

from anubis.domain.errors import UserError

MOST_PACKED: Final = 256 * 1024**2
"""Bytes. Code, not data: the original's own samples take kilobytes."""

MOST_UNPACKED: Final = 1024**3
"""Bytes. An archive is not compressed, but sparse files and hard links could still swell."""

MOST_MEMBERS: Final = 10_000
"""A virtual environment by mistake has more; a project has hundreds."""

MOST_HEADER: Final = 1024**2
"""Bytes of one header. Long names take some hundred; ``tarfile`` would read any size at once."""

LONGEST_PATH: Final = 1024
"""Bytes of a path in an archive: a quarter of what Linux takes."""

LONGEST_PART: Final = 255
"""Bytes between two slashes: what file systems take."""


def demand_size(name: str, size: int) -> None:
    """Raise UserError for an archive of more bytes than we take."""
    if size > MOST_PACKED:
        raise _refused(name, f"found more than {MOST_PACKED:,} bytes; data does not belong in it")


def members(file: IO[bytes], name: str) -> Sequence[tarfile.TarInfo]:
    """All members of the archive in ``file``, which is called ``name`` in messages.

    Raises UserError for whatever is no tar, or holds something that is not acceptable.
    """
    found = _Inspection(name)
    try:
        with tarfile.open(fileobj=_Headers(file), mode="r:") as archive:
            for member in archive:
                found.add(member)
    except (tarfile.TarError, ValueError, OverflowError, RecursionError, EOFError) as error:
        # RecursionError: headers about headers about headers. ValueError: numbers that are none.
        raise _refused(name, f"it is no tar archive that can be read ({_short(error)})") from None
    return found.checked()


class _Headers(io.BufferedIOBase):
    """The file as ``tarfile`` sees it here: it may look at headers, and at nothing large."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= MOST_HEADER:
            raise tarfile.ReadError(f"a header of more than {MOST_HEADER} bytes")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


class _Inspection:
    """What was found so far. Single members are judged at once, paths when all are known."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._members: list[tarfile.TarInfo] = []
        self._unpacked = 0

    def add(self, member: tarfile.TarInfo) -> None:
        self._members.append(member)
        if len(self._members) > MOST_MEMBERS:
            raise _refused(self._name, f"it holds more than {MOST_MEMBERS:,} files")
        for complaint in _complaints(member):
            raise _refused(self._name, f"{_shown(member.name)} {complaint}")
        if member.isreg():
            self._unpacked += member.size
        if self._unpacked > MOST_UNPACKED:
            raise _refused(self._name, f"it unpacks to more than {MOST_UNPACKED:,} bytes")

    def checked(self) -> Sequence[tarfile.TarInfo]:
        places = {normal(member.name): _kind(member) for member in self._members}
        before = dict[str, str]()
        for member in self._members:
            for complaint in _complaints_of_paths(member, places, before):
                raise _refused(self._name, f"{_shown(member.name)} {complaint}")
            before[normal(member.name)] = _kind(member)
        return self._members


def normal(path: str) -> str:
    """A path below the folder, without ``./`` and doubled slashes."""
    return posixpath.normpath(path)


def _kind(member: tarfile.TarInfo) -> str:
    """Several types of tar are one kind to us."""
    if member.isdir():
        return _FOLDER
    if member.issym():
        return _LINK
    return _HARD_LINK if member.islnk() else _FILE


_FOLDER, _LINK, _HARD_LINK, _FILE = "folder", "link", "hard link", "file"


def _complaints(member: tarfile.TarInfo) -> Iterator[str]:
    """What is wrong with a member, whatever else is in the archive."""
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        yield "is a device, a pipe or something else that is no file, folder or link"
    if member.size < 0 or member.issparse() or _is_sparse(member):
        yield "is a sparse file, or its size is no number; pack it without --sparse"
    if _is_too_long(member.name) or _is_too_long(member.linkname):
        yield f"has a path of more than {LONGEST_PATH} bytes, or {LONGEST_PART} between slashes"
    if "\0" in member.name + member.linkname:
        yield "has a path with a NUL in it"
    if (member.issym() or member.islnk()) and not member.linkname:
        yield "is a link to nowhere"
    if posixpath.isabs(member.name):
        yield "has an absolute path"
    if ".." in member.name.split("/"):
        yield "leads out of the archive's folder ('..')"
    if normal(member.name) == "." and not member.isdir():
        yield "has no name"


def _is_sparse(member: tarfile.TarInfo) -> bool:
    return any(key.startswith("GNU.sparse.") for key in member.pax_headers)


def _is_too_long(path: str) -> bool:
    text = path.encode("utf-8", "surrogateescape")
    return len(text) > LONGEST_PATH or any(len(part) > LONGEST_PART for part in text.split(b"/"))


def _complaints_of_paths(
    member: tarfile.TarInfo, places: Mapping[str, str], before: Mapping[str, str]
) -> Iterator[str]:
    """What is wrong with the way to a member, and with the way a link leads.

    ``places`` says what is where in the whole archive, ``before`` in what comes before the member.
    """
    place = normal(member.name)
    if any(places.get(parent, _FOLDER) != _FOLDER for parent in _parents(place)):
        yield "lies behind something that is no folder"
    if places[place] != _kind(member):
        yield "is there twice, as different things"
    if member.issym():
        target = posixpath.join(posixpath.dirname(place), member.linkname)
        if _leaves(target) or _passes_a_link(target, places):
            yield f"is a link out of the archive's folder, to {_shown(member.linkname)}"
    if member.islnk():  # which names its target from the folder, not from its own place
        target = member.linkname
        if _leaves(target) or before.get(normal(target)) != _FILE:
            yield f"is a link to {_shown(target)}, which is no file that comes before it"


def _parents(place: str) -> Iterator[str]:
    while place := posixpath.dirname(place):
        yield place


def _leaves(place: str) -> bool:
    """Whether a path is absolute, or goes above its start at any point on the way."""
    if posixpath.isabs(place):
        return True
    return any(step.split("/")[0] == ".." for step in _steps(place))


def _passes_a_link(place: str, places: Mapping[str, str]) -> bool:
    """Whether a path goes through a link. That it ends at one is fine: that one is checked too."""
    *way, _ = _steps(place)
    return any(places.get(step) == _LINK for step in way)


def _steps(place: str) -> list[str]:
    """Where one is after each part of a path: ``a/../b`` gives ``a``, ``.``, ``b``."""
    parts = place.split("/")
    return [posixpath.normpath("/".join(parts[: count + 1])) for count in range(len(parts))]


def _refused(name: str, reason: str) -> UserError:
    return UserError(f"script archive {name}: {reason}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:100]}…")


def _short(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:200]
