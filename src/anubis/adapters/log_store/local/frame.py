"""The format of a log file: a file header, then frames that only ever get appended.

A frame holds whole lines of one or more segments (unit, stream, instant), compressed together.
Its header tells the length and the line numbers, so that a reader can step from frame to frame
without decompressing. All numbers are little-endian.

======== ====================================================================
file     magic ``ANUBLOG1``, eight random bytes that name this very file
frame    magic ``ANLF``, CRC-32 of the payload, bytes of the payload, bytes of
         text, number of the first line, lines
payload  zstd of: number of segments, bytes of unit names, names (JSON list),
         then per segment name index and stream (u16 each), instant (i64,
         microseconds), bytes (u32); then the text of all segments
======== ====================================================================
"""

from __future__ import annotations

import dataclasses
import json
import struct
import zlib
from array import array
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import zstandard

from anubis.domain.errors import StoreUnusable
from anubis.domain.logline import LogLine
from anubis.domain.observation import Stream

FILE_MAGIC = b"ANUBLOG1"
FILE_HEADER_SIZE = 16

TARGET_SIZE = 64 * 1024
"""Bytes of text in a frame. Smaller frames compress worse, larger ones are slower to look into."""

HEADER = struct.Struct("<4sIIIQI")
_FRAME_MAGIC = b"ANLF"
_COUNTS = struct.Struct("<II")
_STREAMS = tuple(Stream)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclasses.dataclass(slots=True)
class Segment:
    """Whole lines, or one piece of a long line, that arrived together."""

    unit: str
    stream: Stream
    at: int  #: microseconds since the epoch
    text: bytes

    @property
    def lines(self) -> int:
        """How many lines; a piece without a newline is one."""
        return self.text.count(b"\n") + (not self.text.endswith(b"\n"))


@dataclasses.dataclass(frozen=True, slots=True)
class Header:
    """Where a frame is and what it holds."""

    offset: int  #: of the frame in its file
    checksum: int
    payload_size: int
    text_size: int
    first_line: int
    lines: int

    @property
    def end(self) -> int:
        """Offset of the byte after the frame."""
        return self.offset + HEADER.size + self.payload_size

    @property
    def last_line(self) -> int:
        """Number of the last line."""
        return self.first_line + self.lines - 1


def instant(at: datetime) -> int:
    """Microseconds since the epoch, exactly."""
    return (at - _EPOCH) // _MICROSECOND


def encode(segments: Sequence[Segment], first_line: int) -> bytes:
    """One frame."""
    names = sorted({segment.unit for segment in segments})
    indexes = {name: index for index, name in enumerate(names)}
    table = json.dumps(names).encode()
    content = b"".join(
        [
            _COUNTS.pack(len(segments), len(table)),
            table,
            array("H", [indexes[segment.unit] for segment in segments]).tobytes(),
            array("H", [_STREAMS.index(segment.stream) for segment in segments]).tobytes(),
            array("q", [segment.at for segment in segments]).tobytes(),
            array("I", [len(segment.text) for segment in segments]).tobytes(),
            *(segment.text for segment in segments),
        ]
    )
    payload = zstandard.ZstdCompressor(level=1).compress(content)
    text_size = sum(len(segment.text) for segment in segments)
    lines = sum(segment.lines for segment in segments)
    checksum = zlib.crc32(payload)
    header = (_FRAME_MAGIC, checksum, len(payload), text_size, first_line, lines)
    return HEADER.pack(*header) + payload


def decode_header(data: bytes, offset: int) -> Header:
    """Read what ``data`` says about the frame at ``offset``. Raises StoreUnusable."""
    magic, checksum, payload_size, text_size, first_line, lines = HEADER.unpack(data)
    if magic != _FRAME_MAGIC:
        raise StoreUnusable(f"The log file is damaged: no frame begins at byte {offset}.")
    return Header(offset, checksum, payload_size, text_size, first_line, lines)


def decompress(header: Header, payload: bytes) -> bytes:
    """The content of a frame: its tables and its text. Raises StoreUnusable."""
    if zlib.crc32(payload) != header.checksum:
        raise StoreUnusable(
            f"The log file is damaged: the frame at byte {header.offset} is broken."
        )
    return zstandard.ZstdDecompressor().decompress(payload)


def text_of(header: Header, content: bytes) -> memoryview:
    """The text of all segments, without a copy."""
    return memoryview(content)[len(content) - header.text_size :]


def segments(content: bytes) -> Iterator[Segment]:
    """The segments of a frame, in order."""
    count, table_size = _COUNTS.unpack_from(content)
    at = _COUNTS.size + table_size
    names = json.loads(content[_COUNTS.size : at])
    units, at = _column("H", content, at, count)
    streams, at = _column("H", content, at, count)
    instants, at = _column("q", content, at, count)
    sizes, at = _column("I", content, at, count)
    for unit, stream, when, size in zip(units, streams, instants, sizes, strict=True):
        yield Segment(names[unit], _STREAMS[stream], when, content[at : at + size])
        at += size


def lines(segment: Segment, first_line: int) -> Iterator[LogLine]:
    """The lines of a segment, numbered from ``first_line``."""
    at = _EPOCH + timedelta(microseconds=segment.at)
    start = 0
    number = first_line
    while start < len(segment.text):
        end = segment.text.find(b"\n", start) + 1 or len(segment.text)
        text = segment.text[start:end]
        yield LogLine(number=number, at=at, unit=segment.unit, stream=segment.stream, text=text)
        number += 1
        start = end


def _column(code: str, content: bytes, at: int, count: int) -> tuple[array[int], int]:
    column = array(code)
    end = at + count * column.itemsize
    column.frombytes(content[at:end])
    return column, end
