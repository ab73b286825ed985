"""Read a run's directory as it grows, and tell what it says as observations."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from anubis.adapters.engine.process.guardian import files, journal
from anubis.domain.observation import (
    EmittedChunk,
    EndCause,
    Observation,
    OutputChunk,
    ResourceReading,
    Stream,
    UnitEnded,
    UnitStarted,
)

CHUNK_BYTES = 1 << 20
JOURNAL_BYTES = 64 * 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EMITTED = 2
_STREAMS = (Stream.STDOUT, Stream.STDERR)


def moment(nanoseconds: int) -> datetime:
    """A time of the journal, as the domain writes it."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


class _Kept:
    """One stream's file, read forward once. Reads ahead: many marks may lie in one read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._ahead = b""
        self.position = 0

    def size(self) -> int:
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def take(self, end: int) -> Iterator[bytes]:
        """The bytes up to ``end``, in pieces of at most ``CHUNK_BYTES``."""
        while self.position < end:
            if not self._ahead:
                self._ahead = self._read()
            piece = self._ahead[: end - self.position]
            if not piece:  # the file is shorter than the journal says: a disk lost its tail
                return
            self._ahead = self._ahead[len(piece) :]
            self.position += len(piece)
            yield piece

    def _read(self) -> bytes:
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._descriptor, CHUNK_BYTES, self.position)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)


class Follower:
    """One reader of one run. Blocking, but only for as long as a chunk takes to read."""

    def __init__(self, directory: Path, unit: str) -> None:
        self._directory = directory
        self._unit = unit
        self._kept = [_Kept(directory / file) for _, file in files.STREAMS]
        self._journal: int | None = None
        self._position = journal.RECORD.size
        self._latest = _EPOCH

    def pending_bytes(self) -> int:
        """How much the next turn would read, at most: to decide whether it needs a thread."""
        return sum(kept.size() - kept.position for kept in self._kept)

    def turn(self) -> Iterator[Observation]:
        """What is new since the last turn, in the order of the journal."""
        while records := self._read_records():
            for kind, stream, nanoseconds, *numbers in records:
                # Somebody may set the clock back; what happened later must not look earlier.
                at = self._latest = max(self._latest, moment(nanoseconds))
                if kind == journal.MARK and stream < len(self._kept):
                    yield from self._chunks(stream, numbers[0], at)
                elif kind == journal.STARTED:
                    yield UnitStarted(unit=self._unit, at=at)
                elif kind == journal.READING:
                    yield self._reading(at, numbers)

    def _read_records(self) -> list[tuple[int, ...]]:
        if self._journal is None:
            try:
                flags = os.O_RDONLY | os.O_CLOEXEC
                self._journal = os.open(self._directory / files.JOURNAL, flags)
            except FileNotFoundError:
                return []
        content = os.pread(self._journal, JOURNAL_BYTES, self._position)
        whole = len(content) - len(content) % journal.RECORD.size
        self._position += whole
        return list(journal.RECORD.iter_unpack(content[:whole]))

    def _chunks(self, stream: int, end: int, at: datetime) -> Iterator[Observation]:
        for data in self._kept[stream].take(end):
            if stream == _EMITTED:
                yield EmittedChunk(unit=self._unit, at=at, data=data)
            else:
                yield OutputChunk(unit=self._unit, at=at, stream=_STREAMS[stream], data=data)

    def _reading(self, at: datetime, numbers: list[int]) -> ResourceReading:
        cpu_ns, resident, read, written, threads, processes = numbers
        return ResourceReading(
            unit=self._unit,
            at=at,
            cpu_seconds=cpu_ns / 1e9,
            memory_bytes=resident,
            read_bytes=read,
            written_bytes=written,
            threads=threads,
            processes=processes,
        )

    def rest(self, ended: UnitEnded) -> Iterator[Observation]:
        """After the end: bytes that nobody lived to mark, then the end itself."""
        at = max(self._latest, ended.at)
        for stream, kept in enumerate(self._kept):
            yield from self._chunks(stream, kept.size(), at)
        yield dataclasses.replace(ended, at=at)

    def close(self) -> None:
        """Let go of the files."""
        if self._journal is not None:
            os.close(self._journal)
            self._journal = None
        for kept in self._kept:
            kept.close()


def read_ended(directory: Path) -> UnitEnded | None:
    """How the run ended, None while it goes on."""
    status = files.read_json(str(directory), files.STATUS)
    if status is None:
        return None
    ended_ns = status.pop("ended_ns")
    assert isinstance(ended_ns, int)
    cause = EndCause(str(status.pop("cause")))
    return UnitEnded(at=moment(ended_ns), cause=cause, **status)  # type: ignore[arg-type] # our own file
