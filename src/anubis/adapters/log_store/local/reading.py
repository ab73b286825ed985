"""Read a log file, also while it is written by another process.

``LogFile`` gives frames by their headers. ``HeaderCache`` remembers the headers of logs that
were read before, so that following a log costs what is new in it: a file is known by the random
name in its header, which changes when the log is started anew or rewritten.
"""

from __future__ import annotations

import collections
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from anubis.adapters.log_store.local import frame
from anubis.domain.errors import StoreUnusable

MOST_CACHED = 128
"""Logs whose headers are remembered; 2 MB for the headers of a log of 1 GB."""


class LogFile:
    """One open log file."""

    def __init__(self, descriptor: int, name: bytes) -> None:
        self.name = name  #: differs between any two log files
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: Path) -> LogFile | None:
        """Open the log at ``path``; None if there is none, or none yet."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        return cls.opened(descriptor)

    @classmethod
    def opened(cls, descriptor: int) -> LogFile:
        """Read a log through a descriptor, which is ours from now on. Raises StoreUnusable."""
        head = os.pread(descriptor, frame.FILE_HEADER_SIZE, 0)
        if not head.startswith(frame.FILE_MAGIC) or len(head) < frame.FILE_HEADER_SIZE:
            os.close(descriptor)
            raise StoreUnusable("The log file is damaged or was written by a newer version.")
        return cls(descriptor, head)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    @property
    def size(self) -> int:
        """Bytes in the file now."""
        return os.fstat(self._descriptor).st_size

    def headers(self, known: Sequence[frame.Header] = ()) -> list[frame.Header]:
        """The headers of all complete frames after the known ones.

        A frame at the end that is not complete is left out: it is being written, or its
        writer was killed.
        """
        size = self.size
        offset = known[-1].end if known else frame.FILE_HEADER_SIZE
        found = []
        while offset + frame.HEADER.size <= size:
            data = os.pread(self._descriptor, frame.HEADER.size, offset)
            if not any(data):  # space that a power failure left without content
                break
            header = frame.decode_header(data, offset)
            if header.end > size:
                break
            found.append(header)
            offset = header.end
        return found

    def raw(self, header: frame.Header) -> bytes:
        """A frame as it is in the file."""
        return os.pread(self._descriptor, header.end - header.offset, header.offset)

    def content(self, header: frame.Header) -> bytes:
        """The decompressed content of a frame."""
        return frame.decompress(header, self.raw(header)[frame.HEADER.size :])


class HeaderCache:
    """The headers of logs read lately, by path. Safe to use from several threads."""

    def __init__(self) -> None:
        self._known: collections.OrderedDict[Path, tuple[bytes, list[frame.Header]]]
        self._known = collections.OrderedDict()
        self._lock = threading.Lock()

    def headers(self, path: Path, log: LogFile) -> Sequence[frame.Header]:
        """All headers of an open log; only those of new frames are read."""
        with self._lock:
            name, headers = self._known.pop(path, (b"", []))
        if name != log.name:
            headers = []
        headers = headers + log.headers(headers)
        with self._lock:
            self._known[path] = (log.name, headers)
            while len(self._known) > MOST_CACHED:
                self._known.popitem(last=False)
        return headers

    def forget(self, path: Path) -> None:
        """Drop what is known about a log."""
        with self._lock:
            self._known.pop(path, None)
