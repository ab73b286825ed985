"""Keep the output of runs: compressed, in order, searchable."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Collection
from datetime import datetime
from typing import Protocol

from anubis.domain.logline import LogLine
from anubis.domain.observation import Stream
from anubis.domain.run import RunId


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LogQuery:
    """Which lines of a run."""

    units: Collection[str] = ()  #: empty: all
    streams: Collection[Stream] = ()  #: empty: both
    contains: str = ""  #: only lines with this text, letter case as given
    after: int = 0  #: only lines with a higher number
    tail: int | None = None  #: only the last so many of what matches


class LogWriter(Protocol):
    """Takes the output of one run, once, in order."""

    async def append(self, unit: str, stream: Stream, at: datetime, text: bytes) -> None:
        """Add whole lines (or one piece of a very long line). Readers see them after ``flush``."""
        ...

    async def flush(self) -> None:
        """Make all that was appended visible to readers, in this and other processes."""
        ...

    async def seal(self) -> None:
        """Make everything durable and quickly searchable. Nothing is appended after this."""
        ...


class LogReader(Protocol):
    """Look at the output of runs, also while it is being written."""

    def lines(self, run_id: RunId, query: LogQuery) -> AsyncGenerator[LogLine, None]:
        """The lines that match, in order. A run without output has none; that is no error."""
        ...

    def text(self, run_id: RunId, query: LogQuery) -> AsyncGenerator[bytes, None]:
        """The texts of the lines that match, joined, in pieces of any size. Quicker than ``lines``
        for whoever wants nothing else of them.
        """
        ...


class LogStore(LogReader, Protocol):
    """One log per run. Reading while it is written is allowed, from any process."""

    async def writer(self, run_id: RunId) -> LogWriter:
        """Start the log of a run anew: what an interrupted collection left is replaced."""
        ...

    async def size(self, run_id: RunId) -> tuple[int, int]:
        """Bytes of output as written, and bytes on disk."""
        ...

    async def delete(self, run_id: RunId) -> None:
        """Forget the log. Safe to repeat."""
        ...
