"""Which bytes of an object are here. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class Ranges:
    """Disjoint spans, in order; the second number of each is not part of it."""

    def __init__(self, spans: Iterable[tuple[int, int]] = ()) -> None:
        self._spans: list[tuple[int, int]] = []
        for start, end in spans:
            self.add(start, end)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._spans)

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(end - start for start, end in self._spans)

    @property
    def begun(self) -> int:
        """Bytes from the very beginning without a gap."""
        return self._spans[0][1] if self._spans and self._spans[0][0] == 0 else 0

    def add(self, start: int, end: int) -> None:
        """Count a span in; it may touch or cover others."""
        if start >= end:
            return
        apart = []
        for first, last in self._spans:
            if last < start or first > end:
                apart.append((first, last))
            else:
                start, end = min(start, first), max(end, last)
        self._spans = sorted([*apart, (start, end)])

    def missing(self, size: int, most: int) -> Iterator[tuple[int, int]]:
        """What lacks of an object of ``size`` bytes, in spans of at most ``most``."""
        position = 0
        for start, end in [*self._spans, (size, size)]:
            until = min(start, size)
            while position < until:
                yield position, min(position + most, until)
                position = min(position + most, until)
            position = max(position, end)
