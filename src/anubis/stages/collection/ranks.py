"""Tell the output of MPI ranks apart: a launcher that tags its lines speaks for all of them.

``mpirun`` with its option ``tag-output`` begins each line with ``[1,3]<stdout>:``, for rank 3 of
job 1. Such a line becomes one of the unit ``rank-3``, without the tag; what has none is the
launcher's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from anubis.domain.observation import Stream

_TAG = re.compile(rb"\[\d{1,9},(\d{1,9})\]<(stdout|stderr|stddiag)>:")


def split(unit: str, stream: Stream, block: bytes) -> Iterator[tuple[str, Stream, bytes]]:
    """Whole lines of a launcher as lines of its ranks, in order; neighbours stay together."""
    if b"]<std" not in block:
        yield unit, stream, block
        return
    source, lines = (unit, stream), list[bytes]()
    for line in _lines(block):
        found = _TAG.match(line)
        speaker = _speaker(found) if found else (unit, stream)
        if speaker != source and lines:
            yield *source, b"".join(lines)
            lines = []
        source = speaker
        lines.append(line[found.end() :] if found else line)
    if lines:
        yield *source, b"".join(lines)


def _lines(block: bytes) -> list[bytes]:
    """Only a newline ends a line: a progress bar's carriage returns do not."""
    parts = block.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _speaker(found: re.Match[bytes]) -> tuple[str, Stream]:
    stream = Stream.STDOUT if found[2] == b"stdout" else Stream.STDERR
    return f"rank-{int(found[1])}", stream
