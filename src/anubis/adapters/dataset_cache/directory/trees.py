"""Folders of files: what they are called by their content, made read-only, and deleted."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

READ_ONLY, PROGRAM, FOLDER = 0o444, 0o555, 0o555

READ_BYTES: Final = 1024**2
"""At once: fits into the cache of a processor, and the interpreter is entered rarely."""


class Stopped(Exception):
    """Whoever wanted to know does not any more."""


def hash_of(path: Path, stop: threading.Event | None = None) -> str:
    """The SHA-256 of one file, in hex digits. Raises Stopped soon after ``stop`` was set."""
    found = hashlib.sha256()
    buffer = bytearray(READ_BYTES)
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            found.update(memoryview(buffer)[:count])
            if stop is not None and stop.is_set():
                raise Stopped
    return found.hexdigest()


def digest(
    root: Path, known: Mapping[str, str] | None = None, stop: threading.Event | None = None
) -> str:
    """The digest of a directory: the SHA-256 of what ``sha256sum`` says of all its files.

    ``LC_ALL=C sort -k2`` of its lines, that is: in the order of the paths' bytes. A program has
    the ``*`` that marks binary files there, and a link stands with its target. ``known`` are the
    digests of files that need not be read again, by their paths below the root.
    """
    known = known or {}
    lines = hashlib.sha256()
    for name in sorted(_files(root), key=os.fsencode):
        path = root / name
        if path.is_symlink():
            text = f"link:{path.readlink()}  {name}"
        else:
            mark = "*" if path.stat().st_mode & stat.S_IXUSR else " "
            text = f"{known.get(name) or hash_of(path, stop)} {mark}{name}"
        lines.update(_escaped(os.fsencode(text)) + b"\n")
    return lines.hexdigest()


def _escaped(text: bytes) -> bytes:
    """As ``sha256sum`` writes names that have a line break in them."""
    if b"\n" not in text and b"\\" not in text:
        return text
    return b"\\" + text.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")


def _files(root: Path) -> Iterator[str]:
    """All that is no folder, as paths below the root."""
    pending = [root]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                else:
                    yield os.path.relpath(entry.path, root)


def count(root: Path) -> tuple[int, int]:
    """How many files there are, and their bytes. What several names share counts once."""
    files, sizes = 0, dict[int, int]()
    for name in _files(root):
        found = (root / name).lstat()
        files += 1
        sizes[found.st_ino] = found.st_size
    return files, sum(sizes.values())


def seal(root: Path) -> None:
    """Take away the rights to write from a file, or from a directory with all that is in it."""
    if not root.is_dir():
        root.chmod(PROGRAM if root.stat().st_mode & stat.S_IXUSR else READ_ONLY)
        return
    for parent, _, files in os.walk(root, topdown=False):
        for name in files:
            path = Path(parent, name)
            if not path.is_symlink():
                path.chmod(PROGRAM if path.stat().st_mode & stat.S_IXUSR else READ_ONLY)
        Path(parent).chmod(FOLDER)


def move_away(path: Path, removed: Path) -> None:
    """Take something out of its place in one step, to be deleted by ``clear``."""
    with contextlib.suppress(FileNotFoundError):
        path.rename(removed / secrets.token_hex(8))


def clear(removed: Path) -> None:
    """Delete what was moved away, also by others who did not come to it."""
    with os.scandir(removed) as entries:
        places = [Path(entry.path) for entry in entries]
    for place in places:
        delete(place)


def delete(place: Path) -> None:
    """Delete all of it. Somebody else may be doing the same."""
    for parent, folders, _ in os.walk(place):
        for name in folders:  # only who may write to a folder may delete what is in it
            with contextlib.suppress(OSError):
                if not Path(parent, name).is_symlink():
                    Path(parent, name).chmod(0o700)
    shutil.rmtree(place, ignore_errors=True)
    with contextlib.suppress(OSError):
        place.unlink(missing_ok=True)


def taken(place: Path) -> int:
    """Bytes of disk that all below a folder takes; zero if it goes away meanwhile."""
    total = 0
    for parent, _, files in os.walk(place):
        for name in files:
            with contextlib.suppress(FileNotFoundError):
                total += Path(parent, name).lstat().st_blocks * 512
    return total
