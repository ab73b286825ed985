"""From what is kept of a unit to what an observer is told: the same for everyone, every time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import datetime

from anubis.adapters.engine.kubernetes import recording
from anubis.adapters.engine.kubernetes.mirroring import Reader
from anubis.adapters.engine.kubernetes.places import Place
from anubis.adapters.engine.kubernetes.recording import Frame, Kind
from anubis.adapters.engine.process.following import moment
from anubis.domain.observation import (
    EmittedChunk,
    Observation,
    OutputChunk,
    ResourceReading,
    Stream,
    UnitEnded,
    UnitStarted,
    UnitWaiting,
)

_STREAMS = {Kind.STDOUT: Stream.STDOUT, Kind.STDERR: Stream.STDERR}


class Teller:
    """One reader of one unit's place."""

    def __init__(self, place: Place, unit: str) -> None:
        self._place = place
        self._unit = unit
        self._reader = Reader(place.journal)
        self._told = 0  #: chapters of the story
        self._latest: datetime | None = None
        self._has_begun = False

    def turn(self, size: int) -> Iterator[Observation]:
        """What is new since the last turn; ``size`` of the journal is known to be whole.

        Output may come before the cluster says that the program runs: it is told after that.
        """
        if not self._has_begun:
            yield from self._story()
        if self._has_begun:
            yield from self._journal(size)

    def rest(self, size: int, ended: UnitEnded) -> Iterator[Observation]:
        """All that is left, and the end. ``size`` is that of the whole journal."""
        yield from self.turn(size)
        yield from self._journal(size)
        yield dataclasses.replace(ended, at=self._later(ended.at))

    def close(self) -> None:
        """Let go of the files."""
        self._reader.close()

    def _story(self) -> Iterator[Observation]:
        chapters = self._place.story()
        for chapter in chapters[self._told :]:
            at = self._later(chapter.at)
            if chapter.waiting:
                yield UnitWaiting(unit=self._unit, at=at, message=chapter.waiting)
            else:
                self._has_begun = True
                yield UnitStarted(unit=self._unit, at=at, where=chapter.where)
        self._told = len(chapters)

    def _journal(self, size: int) -> Iterator[Observation]:
        for frames in self._reader.turn(size):
            for frame in frames:
                yield from self._observation(frame)

    def _observation(self, frame: Frame) -> Iterator[Observation]:
        if frame.kind not in (*_STREAMS, Kind.EMITTED, Kind.READING):
            return
        at = self._later(moment(frame.at_ns))
        if not self._has_begun:  # nobody lived to see it begin, but it wrote something
            self._has_begun = True
            yield UnitStarted(unit=self._unit, at=at)
        if frame.kind == Kind.EMITTED:
            yield EmittedChunk(unit=self._unit, at=at, data=frame.data)
        elif frame.kind == Kind.READING:
            yield _reading(self._unit, at, frame)
        else:
            stream = _STREAMS[Kind(frame.kind)]
            yield OutputChunk(unit=self._unit, at=at, stream=stream, data=frame.data)

    def _later(self, at: datetime) -> datetime:
        """Clocks of nodes differ from ours, and are set; what comes later is not earlier."""
        self._latest = at if self._latest is None else max(self._latest, at)
        return self._latest


def _reading(unit: str, at: datetime, frame: Frame) -> ResourceReading:
    read = recording.Reading(**frame.json())  # type: ignore[arg-type] # our own recorder's
    return ResourceReading(
        unit=unit,
        at=at,
        cpu_seconds=read.cpu_seconds,
        memory_bytes=read.memory_bytes,
        read_bytes=read.read_bytes,
        written_bytes=read.written_bytes,
        threads=read.threads,
        processes=read.processes,
    )
