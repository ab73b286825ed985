"""The journal of a run: when which byte was seen, and what the program used.

Records have one size, so that a reader needs no index and a writer that died in the middle of
one leaves a tail that everybody can skip. Creating the file is the right to start the run: it
succeeds once.
"""

from __future__ import annotations

import errno
import os
import struct
import time

from anubis.adapters.engine.process.guardian import files

RECORD = struct.Struct("<BB6xq6q")
"""Kind, stream, time in ns since 1970, six numbers whose meaning depends on the kind."""

MAGIC = b"ANUBIS JOURNAL 1\n".ljust(RECORD.size)

STARTED = 1  #: numbers: process id, its start time in clock ticks since boot
MARK = 2  #: numbers: bytes of this stream so far
READING = 3  #: numbers: CPU ns, resident bytes, read bytes, written bytes, threads, processes


class Journal:
    """Append records. One writer at a time: who holds the run's lock."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def create(cls, directory: str) -> Journal:
        """Take the right to start this run. Raises FileExistsError if it is taken."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        journal = cls(os.open(f"{directory}/{files.JOURNAL}", flags, 0o600))
        files.write_all(journal._descriptor, MAGIC)
        return journal

    @classmethod
    def reopen(cls, directory: str) -> Journal:
        """Go on where a dead writer stopped; a record it did not finish is cut off."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(f"{directory}/{files.JOURNAL}", flags)
        size = os.fstat(descriptor).st_size
        os.ftruncate(descriptor, size - size % RECORD.size)
        if size < RECORD.size:
            files.write_all(descriptor, MAGIC)
        return cls(descriptor)

    def started(self, process: int, ticks: int, at: int | None = None) -> None:
        """The program exists; since ``at``, in ns since 1970, or now."""
        self._append(STARTED, 0, (process, ticks, 0, 0, 0, 0), at)

    def mark(self, stream: int, size: int) -> None:
        """Of this stream, so many bytes are in its file by now."""
        self._append(MARK, stream, (size, 0, 0, 0, 0, 0))

    def reading(self, numbers: tuple[int, int, int, int, int, int]) -> None:
        """What the tree uses now."""
        self._append(READING, 0, numbers)

    def _append(
        self, kind: int, stream: int, numbers: tuple[int, ...], at: int | None = None
    ) -> None:
        record = RECORD.pack(kind, stream, at or time.time_ns(), *numbers)
        written = os.write(self._descriptor, record)
        if written < len(record):  # an almost full disk; half a record would shift all later ones
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


def find_started(directory: str) -> tuple[int, int] | None:
    """The program's process id and start time, if it got that far. It is in the first records."""
    try:
        descriptor = os.open(f"{directory}/{files.JOURNAL}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        content = os.read(descriptor, RECORD.size * 16)
    finally:
        os.close(descriptor)
    for offset in range(0, len(content) - RECORD.size + 1, RECORD.size):
        kind, _, _, process, ticks, *_ = RECORD.unpack_from(content, offset)
        if kind == STARTED:
            return process, ticks
    return None
