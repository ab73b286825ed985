"""Copy a span of a file of this machine inside the kernel. Some file systems share the blocks."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import Final

AT_ONCE: Final = 1024**2
_NOT_HERE: Final = frozenset({errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})
"""Between these two files, the kernel cannot."""


def copy(original: Path, target: Path, start: int, end: int) -> bool:
    """Copy a span; holes stay holes. False if the original was changed meanwhile, or is shorter."""
    with original.open("rb", buffering=0) as source, target.open("r+b", buffering=0) as made:
        before = os.fstat(source.fileno())
        position = _data(source.fileno(), start, end)
        while position < end:
            count = _some(source.fileno(), made.fileno(), position, end)
            if count == 0:
                return False
            position = _data(source.fileno(), position + count, end)
        after = os.fstat(source.fileno())
    return _sign(before) == _sign(after) and after.st_size >= end


def _data(file: int, position: int, end: int) -> int:
    """Where the next data begins."""
    try:
        return min(end, os.lseek(file, position, os.SEEK_DATA))
    except OSError as error:
        if error.errno == errno.ENXIO:
            return end
        return position


def _some(source: int, target: int, position: int, end: int) -> int:
    with contextlib.suppress(OSError):  # a file system without holes
        end = min(end, os.lseek(source, position, os.SEEK_HOLE))
    try:
        return os.copy_file_range(source, target, end - position, position, position)
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
    piece = os.pread(source, min(AT_ONCE, end - position), position)
    return os.pwrite(target, piece, position)


def _sign(found: os.stat_result) -> tuple[int, ...]:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
