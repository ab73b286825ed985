"""Turn chunks that were cut anywhere into blocks of whole lines, byte for byte.

Works on blocks, not on lines: a Python object per line would cost more than all the rest of
the stage. A line that is longer than ``LONGEST_LINE`` is passed on in pieces without a newline,
so that a program that never ends its line cannot fill our memory.
"""

from __future__ import annotations

LONGEST_LINE = 1024 * 1024
"""One MiB: far above any line written for people, far below what memory would notice."""


class LineAssembler:
    """The lines of one stream of one unit. Joining all it returns gives back all it was fed."""

    def __init__(self, longest_line: int = LONGEST_LINE) -> None:
        self._longest = longest_line
        self._rest: list[bytes] = []
        self._rest_size = 0

    def add(self, data: bytes) -> list[bytes]:
        """Take the next bytes; give the blocks of whole lines, and pieces, that are complete.

        Every block ends with a newline, except that a piece of an over-long line is a block
        of its own and does not.
        """
        end = data.rfind(b"\n") + 1
        if end == 0:
            return self._keep(data)
        whole = b"".join([*self._rest, memoryview(data)[:end]]) if self._rest_size else data[:end]
        self._rest, self._rest_size = [], 0
        return self._cut_block(whole) + self._keep(data[end:])

    def finish(self) -> bytes:
        """The rest, which the program never ended with a newline; may be empty."""
        rest = b"".join(self._rest)
        self._rest, self._rest_size = [], 0
        return rest

    def _keep(self, data: bytes) -> list[bytes]:
        if not data:
            return []
        self._rest.append(data)
        self._rest_size += len(data)
        if self._rest_size <= self._longest:
            return []
        *pieces, last = self._cut(b"".join(self._rest))
        self._rest, self._rest_size = [last], len(last)
        return pieces

    def _cut(self, line: bytes) -> list[bytes]:
        """Pieces of at most the longest size; a newline stays with the last piece."""
        if len(line) <= self._longest:
            return [line]
        return [line[at : at + self._longest] for at in range(0, len(line), self._longest)]

    def _cut_block(self, block: bytes) -> list[bytes]:
        """Give whole lines back as one block, except that over-long lines are cut out."""
        blocks = []
        start = at = 0
        while len(block) - at > self._longest:
            end = block.rfind(b"\n", at, at + self._longest) + 1
            if end:  # no line up to there is too long, and the next one begins there
                at = end
                continue
            end = block.find(b"\n", at) + 1
            blocks.extend([block[start:at]] if at > start else [])
            blocks.extend(self._cut(block[at:end]))
            start = at = end
        return [*blocks, block[start:]] if start < len(block) else blocks
