"""Write the log of one run.

Nothing touches the disk before there is output. Full frames are written as they fill up;
``flush`` writes what is pending as a small frame, so that readers can follow; ``seal`` merges
small frames, makes the file durable and builds the full-text index if the log is large.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import weakref
from collections.abc import Iterator
from datetime import datetime

from anubis.adapters.log_store.local import files, frame, indexing, reading
from anubis.domain.observation import Stream

INLINE_BYTES = 256 * 1024
"""Appends up to this size take less than a millisecond; larger ones go to a thread."""

MOST_SMALL_FRAMES = 8
"""With fewer small frames than this, merging them would cost more than it gains."""

INDEX_FROM = 1024 * 1024
"""Bytes of text. A smaller log is searched in a few milliseconds without an index."""


class LocalLogWriter:
    """Appends to one log file. Used by one task at a time.

    After a StoreUnavailable (the disk is full, say) a frame may be missing or torn: drop this
    writer, and start the log anew when trying again.
    """

    def __init__(self, paths: files.LogFiles) -> None:
        self._paths = paths
        self._pending: list[frame.Segment] = []
        self._pending_size = 0
        self._next_line = 1
        self._text_size = 0
        self._small_frames = 0
        self._descriptor: int | None = None
        self._closing: weakref.finalize[[int], LocalLogWriter] | None = None

    async def append(self, unit: str, stream: Stream, at: datetime, text: bytes) -> None:
        """Add whole lines or one piece of a line."""
        if not text:
            return
        segment = frame.Segment(unit, stream, frame.instant(at), text)
        if len(text) <= INLINE_BYTES:
            self._append(segment)
        else:
            await asyncio.to_thread(self._append, segment)

    async def flush(self) -> None:
        """Write what is pending, whatever its size."""
        if self._pending:
            self._write(self._take_frame())

    async def seal(self) -> None:
        """Merge small frames, make the file durable, index it if it is large."""
        await self.flush()
        if self._descriptor is not None:
            await asyncio.to_thread(self._seal)

    def _append(self, segment: frame.Segment) -> None:
        frames = []
        for text in _pieces(segment.text):
            self._pending.append(frame.Segment(segment.unit, segment.stream, segment.at, text))
            self._pending_size += len(text)
            if self._pending_size >= frame.TARGET_SIZE:
                frames.append(self._take_frame())
        if frames:
            self._write(b"".join(frames))

    def _take_frame(self) -> bytes:
        encoded = frame.encode(self._pending, self._next_line)
        self._next_line += sum(segment.lines for segment in self._pending)
        self._text_size += self._pending_size
        self._small_frames += self._pending_size < frame.TARGET_SIZE // 2
        self._pending, self._pending_size = [], 0
        return encoded

    def _write(self, data: bytes) -> None:
        if self._descriptor is None:
            self._open(_new_file(self._paths))
            self._paths.new_log.rename(self._paths.log)
        assert self._descriptor is not None
        files.write_all(self._descriptor, data)

    def _open(self, descriptor: int) -> None:
        """Own a descriptor; it is closed when we are done, or dropped in the middle of the work."""
        self._close()
        self._descriptor = descriptor
        self._closing = weakref.finalize(self, os.close, descriptor)

    def _close(self) -> None:
        if self._closing is not None:
            self._closing()
        self._descriptor = None

    def _seal(self) -> None:
        assert self._descriptor is not None
        files.check_owner(self._descriptor, self._paths.log)
        if self._small_frames >= MOST_SMALL_FRAMES:
            self._compact()
        # After the rename on purpose: the file systems that matter then make the name durable
        # together with the content, for the price of one fsync. Before this returns, nobody was
        # promised anything: an interrupted collection starts anew.
        os.fsync(self._descriptor)
        if self._text_size >= INDEX_FROM:
            indexing.build(self._paths)
        self._close()

    def _compact(self) -> None:
        """Rewrite the file with small frames merged; line numbers stay."""
        assert self._descriptor is not None
        merged = _new_file(self._paths)
        try:
            for data in _merged_frames(reading.LogFile.opened(os.dup(self._descriptor))):
                files.write_all(merged, data)
            self._paths.new_log.rename(self._paths.log)
        except BaseException:
            os.close(merged)
            raise
        self._open(merged)


def _new_file(paths: files.LogFiles) -> int:
    descriptor = files.create(paths.new_log)
    files.write_all(descriptor, frame.FILE_MAGIC + secrets.token_bytes(8))
    return descriptor


def _pieces(text: bytes) -> Iterator[bytes]:
    """Cut at newlines into pieces of about the size of a frame."""
    start = 0
    while len(text) - start > frame.TARGET_SIZE:
        end = text.rfind(b"\n", start, start + frame.TARGET_SIZE) + 1
        end = end or text.find(b"\n", start) + 1 or len(text)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _merged_frames(log: reading.LogFile) -> Iterator[bytes]:
    """The frames of a log; neighbours that are small become one."""
    small: list[frame.Segment] = []
    small_size = 0
    first_line = 1
    with log:
        for header in log.headers():
            is_small = header.text_size < frame.TARGET_SIZE // 2
            if small and (not is_small or small_size >= frame.TARGET_SIZE):
                yield frame.encode(small, first_line)
                small, small_size = [], 0
            if not is_small:
                yield log.raw(header)
                continue
            first_line = first_line if small else header.first_line
            small.extend(frame.segments(log.content(header)))
            small_size += header.text_size
        if small:
            yield frame.encode(small, first_line)
