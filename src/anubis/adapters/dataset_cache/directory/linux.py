"""Calls of Linux that Python does not offer, or offers in a costly form."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from pathlib import Path


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def reserve(file: int, size: int) -> None:
    """Have the file system keep room for a file of this size. Raises OSError if there is none.

    Not ``posix_fallocate``: where a file system cannot do it, that one writes every block.
    """
    result = _libc().fallocate(file, 0, ctypes.c_int64(0), ctypes.c_int64(size))
    number = ctypes.get_errno()
    if result != 0 and number in {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}:
        os.ftruncate(file, size)
    elif result != 0:
        raise OSError(number, os.strerror(number))


def sync_tree(folder: Path) -> None:
    """Have all below a folder on the disk. One call for any number of files: one fsync for each
    would take minutes for some ten thousand.
    """
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if _libc().syncfs(file) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(file)


def sync(path: Path) -> None:
    """Have one file, or the names in one folder, on the disk."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
