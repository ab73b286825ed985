"""Remember the last lines of each unit: what a person wants to see first when a run failed."""

from __future__ import annotations

import collections
from collections.abc import Mapping

from anubis.domain.observation import Stream

MOST_LINES = 20
LONGEST_LINE = 500
"""Characters. Enough to recognise an error; a whole line may have a million."""

_LONGEST_BYTES = 4 * LONGEST_LINE  # a character has at most four bytes in UTF-8


class LastLines:
    """The last lines of every unit, both streams merged in order of arrival."""

    def __init__(self) -> None:
        self._lines: dict[str, collections.deque[bytes]] = {}
        self._inside: set[tuple[str, Stream]] = set()  # streams in the middle of a long line

    def add(self, unit: str, stream: Stream, block: bytes) -> None:
        """Take whole lines, or one piece of a long line, of which only the first is kept."""
        lines = self._lines.setdefault(unit, collections.deque(maxlen=MOST_LINES))
        source = (unit, stream)
        goes_on = source in self._inside
        if block.endswith(b"\n"):
            self._inside.discard(source)
            latest = _last(block)
            if goes_on and block.count(b"\n") == 1:
                return
        else:
            self._inside.add(source)
            if goes_on:
                return
            latest = [block]
        lines.extend(line[:_LONGEST_BYTES] for line in latest)

    def decoded(self) -> Mapping[str, tuple[str, ...]]:
        """By unit, oldest first, without newlines."""
        return {
            unit: tuple(
                line.decode("utf-8", "replace").rstrip("\r")[:LONGEST_LINE] for line in lines
            )
            for unit, lines in self._lines.items()
        }


def _last(block: bytes) -> list[bytes]:
    """The last lines of a block that ends with a newline, without a copy of the rest."""
    start = end = len(block) - 1
    for _ in range(MOST_LINES):
        start = block.rfind(b"\n", 0, start)
        if start < 0:
            break
    return block[start + 1 : end].split(b"\n")
