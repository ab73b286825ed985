"""Pick the lines of a log that a query asks for, looking into as few frames as possible."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence

from anubis.adapters.log_store.local import files, frame, indexing, reading
from anubis.domain.logline import LogLine
from anubis.ports.log_store import LogQuery


def search(
    log: reading.LogFile, headers: Sequence[frame.Header], paths: files.LogFiles, query: LogQuery
) -> Iterator[list[LogLine]]:
    """The matching lines in order, in lists of what one step found; a list may be empty."""
    wanted = query.contains.encode("utf-8", "surrogateescape")
    positions = _positions(log, headers, paths, query, wanted)
    if query.tail is None:
        for position in positions:
            yield _matching(log, headers[position], query, wanted)
        return
    parts: list[list[LogLine]] = []
    missing = query.tail
    for position in reversed(positions):
        if missing <= 0:
            break
        part = _matching(log, headers[position], query, wanted)[-missing:]
        missing -= len(part)
        parts.append(part)
        yield []  # lets the caller breathe on the way back
    yield from reversed(parts)


def text_after(headers: Sequence[frame.Header], number: int) -> int:
    """Bytes of text in the frames with lines after ``number``."""
    return sum(header.text_size for header in headers[_first_after(headers, number) :])


def _first_after(headers: Sequence[frame.Header], number: int) -> int:
    return bisect.bisect_right(headers, number, key=lambda header: header.last_line)


def _positions(
    log: reading.LogFile,
    headers: Sequence[frame.Header],
    paths: files.LogFiles,
    query: LogQuery,
    wanted: bytes,
) -> Sequence[int]:
    """The frames to look into, in order."""
    first = _first_after(headers, query.after)
    if wanted:
        candidates = indexing.candidates(paths.index, log.name, wanted)
        if candidates is not None:
            return [position for position in candidates if first <= position < len(headers)]
    return range(first, len(headers))


def _matching(
    log: reading.LogFile, header: frame.Header, query: LogQuery, wanted: bytes
) -> list[LogLine]:
    content = log.content(header)
    if wanted and content.find(wanted, len(content) - header.text_size) < 0:
        return []
    found: list[LogLine] = []
    number = header.first_line
    for segment in frame.segments(content):
        if _is_asked_for(segment, query):
            lines = _lines_with(segment, number, wanted) if wanted else frame.lines(segment, number)
            found.extend(_after(lines, query.after))
        number += segment.lines
    return found


def _is_asked_for(segment: frame.Segment, query: LogQuery) -> bool:
    return (not query.units or segment.unit in query.units) and (
        not query.streams or segment.stream in query.streams
    )


def _after(lines: Iterable[LogLine], number: int) -> Iterator[LogLine]:
    return (line for line in lines if line.number > number)


def _lines_with(segment: frame.Segment, first_line: int, wanted: bytes) -> Iterator[LogLine]:
    """The lines that hold ``wanted``, without making objects of the others."""
    text = segment.text
    counted, number = 0, first_line  # ``number`` is that of the line which begins at ``counted``
    at = text.find(wanted)
    while at >= 0:
        start = text.rfind(b"\n", 0, at) + 1
        end = text.find(b"\n", at) + 1 or len(text)
        if at + len(wanted) > end:  # goes on in the next line, so this line does not hold it
            at = text.find(wanted, at + 1)
            continue
        number += text.count(b"\n", counted, start)
        counted = start
        line = frame.Segment(segment.unit, segment.stream, segment.at, text[start:end])
        yield from frame.lines(line, number)
        at = text.find(wanted, end)
