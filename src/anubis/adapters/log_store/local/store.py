"""The log store over files of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

from anubis.adapters.log_store.local import files, reading, searching, writing
from anubis.domain.logline import LogLine
from anubis.domain.run import RunId
from anubis.ports.log_store import LogQuery

_INLINE_TEXT = 256 * 1024
"""Bytes of text that are searched without leaving the event loop: about a millisecond."""

_STEP_SECONDS = 0.05
_STEP_LINES = 5_000
"""How much a thread searches before the lines found are handed on."""


class LocalLogStore:
    """One log file per run under ``root``; large ones get an index beside them when sealed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._headers = reading.HeaderCache()

    async def writer(self, run_id: RunId) -> writing.LocalLogWriter:
        """Start the log of a run anew. Creates nothing until there is output."""
        await self.delete(run_id)
        return writing.LocalLogWriter(files.LogFiles.of(self._root, run_id))

    async def lines(self, run_id: RunId, query: LogQuery) -> AsyncGenerator[LogLine, None]:
        """The lines that match, in order."""
        async with contextlib.aclosing(self._parts(run_id, query)) as parts:
            async for part in parts:
                for line in part:
                    yield line

    async def text(self, run_id: RunId, query: LogQuery) -> AsyncGenerator[bytes, None]:
        """The texts of the lines that match, thousands of lines in a piece."""
        async with contextlib.aclosing(self._parts(run_id, query)) as parts:
            async for part in parts:
                yield b"".join([line.text for line in part])

    async def _parts(self, run_id: RunId, query: LogQuery) -> AsyncGenerator[list[LogLine], None]:
        paths = files.LogFiles.of(self._root, run_id)
        log = reading.LogFile.open(paths.log)
        if log is None:
            return
        with log:
            headers = await asyncio.to_thread(self._headers.headers, paths.log, log)
            found = searching.search(log, headers, paths, query)
            is_small = searching.text_after(headers, query.after) <= _INLINE_TEXT
            more = True
            while more:
                lines, more = _step(found) if is_small else await asyncio.to_thread(_step, found)
                yield lines

    async def size(self, run_id: RunId) -> tuple[int, int]:
        """Bytes of output as written, and bytes on disk, index included."""
        paths = files.LogFiles.of(self._root, run_id)
        log = reading.LogFile.open(paths.log)
        if log is None:
            return 0, 0
        with log:
            headers = await asyncio.to_thread(self._headers.headers, paths.log, log)
            on_disk = log.size + (paths.index.stat().st_size if paths.index.exists() else 0)
        return sum(header.text_size for header in headers), on_disk

    async def delete(self, run_id: RunId) -> None:
        """Forget the log."""
        paths = files.LogFiles.of(self._root, run_id)
        paths.delete()
        self._headers.forget(paths.log)


def _step(found: Iterator[list[LogLine]]) -> tuple[list[LogLine], bool]:
    """Search for a moment: the lines found, and whether there may be more."""
    lines: list[LogLine] = []
    deadline = time.monotonic() + _STEP_SECONDS
    for part in found:
        lines.extend(part)
        if len(lines) >= _STEP_LINES or time.monotonic() >= deadline:
            return lines, True
    return lines, False
