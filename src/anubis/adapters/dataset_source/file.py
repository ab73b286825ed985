"""Files and folders of this machine, by absolute path or as ``file:`` URIs.

Relative paths are refused: whoever fetches may be a service with a working directory of its own.
What is a link to a file counts as that file. A link to a folder, a device or a pipe is refused and
not passed over in silence: the dataset would lack something.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import urllib.parse
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from anubis.adapters.dataset_source.names import check_count, check_name
from anubis.domain.errors import DatasetInvalid, SourceUnavailable
from anubis.ports.dataset_source import Item, Listing

PIECE_BYTES: Final = 4 * 1024**2


class FileSource:
    """Reads ``file:///folder/file`` and plain absolute paths, whose scheme is the empty one."""

    @property
    def schemes(self) -> frozenset[str]:
        """The empty scheme is that of plain paths."""
        return frozenset({"file", ""})

    async def list(self, uri: str) -> Listing:
        """See the port."""
        return await asyncio.to_thread(_listing, uri)

    async def read(self, item: Item, start: int, end: int | None) -> AsyncIterator[bytes]:
        """See the port."""
        with _opened(item) as file:
            position = start
            while end is None or position < end:
                most = PIECE_BYTES if end is None else min(PIECE_BYTES, end - position)
                piece = await asyncio.to_thread(os.pread, file, most, position)
                if not piece:
                    break
                position += len(piece)
                yield piece
            _demand_unchanged(item, os.fstat(file))


@contextlib.contextmanager
def _opened(item: Item) -> Iterator[int]:
    """A file that is still the one that was listed."""
    try:
        file = os.open(item.address, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise SourceUnavailable(f"{item.address} cannot be read: {error.strerror}") from error
    try:
        _demand_unchanged(item, os.fstat(file))
        yield file
    finally:
        os.close(file)


def path_of(uri: str) -> Path:
    """The path that a URI names. Raises DatasetInvalid for one that is not absolute."""
    if uri.lower().startswith("file:"):
        parts = urllib.parse.urlsplit(uri)
        if parts.netloc not in {"", "localhost"}:
            raise DatasetInvalid(
                f"{uri}: found the host {parts.netloc!r}, expected none: file:///folder/file"
            )
        text = urllib.parse.unquote(parts.path)
    else:
        text = uri
    if not text.startswith("/") or "\0" in text:
        raise DatasetInvalid(
            f"{uri}: found a relative path, expected an absolute one such as "
            "file:///data/train.tar: whoever fetches may have another working directory"
        )
    return Path(text)


def _listing(uri: str) -> Listing:
    path = path_of(uri)
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            items = tuple(sorted(_walk(path, uri), key=lambda item: item.name))
            return Listing(items=items, is_directory=True, has_ranges=True)
        _demand_file(path, found)
        item = _item(path.name, path, found)
        if not os.access(path, os.R_OK):
            raise PermissionError(13, "Permission denied", str(path))
    except OSError as error:
        where = error.filename or uri
        raise DatasetInvalid(f"{where} cannot be read: {error.strerror}") from error
    return Listing(items=(item,), is_directory=False, has_ranges=True)


def _walk(folder: Path, uri: str) -> Iterator[Item]:
    """All files below a folder. Folders without files are not part of a dataset."""
    count = 0
    for parent, folders, files in os.walk(folder, onerror=_raise):
        for name in folders:
            if Path(parent, name).is_symlink():
                raise DatasetInvalid(f"{Path(parent, name)} is a link to a folder; name that one")
        for file in files:
            path = Path(parent, file)
            name = str(path.relative_to(folder))
            check_name(name, uri)
            found = path.stat()
            _demand_file(path, found)
            count += 1
            check_count(count, uri)
            yield _item(name, path, found)


def _raise(error: OSError) -> None:
    raise error


def _item(name: str, path: Path, found: os.stat_result) -> Item:
    where = str(path)
    return Item(
        name=name, address=where, size_bytes=found.st_size, version=_version(found), path=where
    )


def _version(found: os.stat_result) -> str:
    """The time of change of the inode too: that of the content can be set by anybody."""
    return f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}-{found.st_ctime_ns}"


def _demand_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise DatasetInvalid(f"{path} is no file and no folder")


def _demand_unchanged(item: Item, found: os.stat_result) -> None:
    if _version(found) != item.version:
        raise SourceUnavailable(f"{item.address} was changed while it was being fetched")
