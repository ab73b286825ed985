"""Tell the output of MPI ranks apart: a launcher that tags its lines speaks for all of them.

``mpirun`` with its option ``tag-output`` begins each line with ``[1,3]<stdout>:``, for rank 3 of
job 1. Such a line becomes one of the unit ``rank-3``, without the tag; what has none is the
launcher's own.

It passes on what it has read of a rank, which need not be a whole line: then the next tag, often of
another rank, follows in the middle of a line. Each rank's pieces are put together again here.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Iterator
from typing import TypeAlias

from anubis.domain.observation import Stream

LONGEST_REST = 1024 * 1024
"""What is kept of a line that does not end, as of lines everywhere."""

Speaker: TypeAlias = tuple[str, Stream]

_TAG = re.compile(rb"\[\d{1,9},(\d{1,9})\]<(stdout|stderr|stddiag)>:")


class Ranks:
    """What a launcher writes to one stream, as what it and its ranks said."""

    def __init__(self, unit: str, stream: Stream) -> None:
        self._own: Speaker = (unit, stream)
        self._rests: dict[Speaker, bytes] = {}
        self._last = self._own  #: whose words go on if a block begins without a tag

    def add(self, block: bytes) -> Iterator[tuple[str, Stream, bytes]]:
        """Take whole lines, or a piece of one; give whole lines of each, neighbours together."""
        if b"]<std" not in block and not self._rests:
            yield *self._own, block
            return
        for speaker, said in itertools.groupby(self._lines(block), operator.itemgetter(0)):
            yield *speaker, b"".join(line for _, line in said)

    def finish(self) -> Iterator[tuple[str, Stream, bytes]]:
        """What was never ended with a newline."""
        for speaker, rest in self._rests.items():
            yield *speaker, rest
        self._rests = {}

    def _lines(self, block: bytes) -> Iterator[tuple[Speaker, bytes]]:
        for line in _split(block):
            for speaker, text in self._pieces(line):
                said = self._rests.pop(speaker, b"") + text
                if text.endswith(b"\n") or len(said) > LONGEST_REST:
                    yield speaker, said
                elif said:
                    self._rests[speaker] = said

    def _pieces(self, line: bytes) -> Iterator[tuple[Speaker, bytes]]:
        """Who said which part of a line. Only in one that begins with a tag may more follow."""
        speaker = self._last
        if not _TAG.match(line):
            yield speaker, line
        else:
            tags = list(_TAG.finditer(line))
            ends = [tag.start() for tag in tags[1:]] + [len(line)]
            for tag, end in zip(tags, ends, strict=True):
                speaker = _speaker(tag)
                yield speaker, line[tag.end() : end]
        self._last = self._own if line.endswith(b"\n") else speaker


def _split(block: bytes) -> list[bytes]:
    """Only a newline ends a line: a progress bar's carriage returns do not."""
    parts = block.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _speaker(found: re.Match[bytes]) -> Speaker:
    stream = Stream.STDOUT if found[2] == b"stdout" else Stream.STDERR
    return f"rank-{int(found[1])}", stream
