"""Logs in memory, for tests and for trying things out. Searching is a plain scan."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import AsyncGenerator
from datetime import datetime

from anubis.domain.logline import LogLine
from anubis.domain.observation import Stream
from anubis.domain.run import RunId
from anubis.ports.log_store import LogQuery


class MemoryLogStore:
    """Keeps every line as an object. Lost with the process."""

    def __init__(self) -> None:
        self._logs: dict[RunId, _MemoryLogWriter] = {}

    async def writer(self, run_id: RunId) -> _MemoryLogWriter:
        """Start the log of a run anew."""
        self._logs[run_id] = _MemoryLogWriter()
        return self._logs[run_id]

    async def lines(self, run_id: RunId, query: LogQuery) -> AsyncGenerator[LogLine, None]:
        """The visible lines that match, in order."""
        log = self._logs.get(run_id)
        matching = (line for line in (log.visible if log else ()) if _matches(line, query))
        for line in matching if query.tail is None else deque(matching, maxlen=query.tail):
            yield line

    async def text(self, run_id: RunId, query: LogQuery) -> AsyncGenerator[bytes, None]:
        """The texts of the visible lines that match."""
        async for line in self.lines(run_id, query):
            yield line.text

    async def size(self, run_id: RunId) -> tuple[int, int]:
        """Bytes of visible output; none are on disk."""
        log = self._logs.get(run_id)
        return sum(len(line.text) for line in (log.visible if log else ())), 0

    async def delete(self, run_id: RunId) -> None:
        """Forget the log."""
        self._logs.pop(run_id, None)


class _MemoryLogWriter:
    def __init__(self) -> None:
        self.visible: list[LogLine] = []
        self._pending: list[LogLine] = []
        self._numbers = itertools.count(1)

    async def append(self, unit: str, stream: Stream, at: datetime, text: bytes) -> None:
        for part in _split(text):
            number = next(self._numbers)
            line = LogLine(number=number, at=at, unit=unit, stream=stream, text=part)
            self._pending.append(line)

    async def flush(self) -> None:
        self.visible.extend(self._pending)
        self._pending.clear()

    async def seal(self) -> None:
        await self.flush()


def _split(text: bytes) -> list[bytes]:
    *lines, rest = text.split(b"\n")
    return [line + b"\n" for line in lines] + ([rest] if rest else [])


def _matches(line: LogLine, query: LogQuery) -> bool:
    return (
        line.number > query.after
        and (not query.units or line.unit in query.units)
        and (not query.streams or line.stream in query.streams)
        and query.contains.encode("utf-8", "surrogateescape") in line.text
    )
