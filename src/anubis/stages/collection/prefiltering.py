"""Find the lines that can match, by one search for all texts that patterns require.

Aho-Corasick with vector instructions reads more than a gigabyte a second, whatever the number of
texts. What it costs is a Python object per hit, so a text that turns out to be everywhere
(blanks of a table, say) is dropped from the search: its pattern then sees all lines.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator, Sequence

import ahocorasick_rs

Spans = list[tuple[int, int]]
"""Bounds of lines in a chunk, in order."""

_FEWEST_LITERALS = 8
"""With fewer, ahocorasick_rs leaves its vectorised search for one that is 5 to 10 times slower."""

_DENSE = 32
"""A text found more often than once in so many bytes is worse than no prefilter: a hit costs a
tenth of a microsecond, in which RE2 reads as many bytes."""


class Prefilter:
    """Knows, for each pattern with a required text, which lines of a chunk can match."""

    def __init__(self, literals: Sequence[bytes | None]) -> None:
        self._literals = literals
        self._too_frequent: bytes | None = None
        distinct = sorted({text for text in literals if text})
        self._filtered = [index for index, text in enumerate(literals) if text]
        # A longer text hides the shorter ones that overlap it: the search reports hits that do
        # not overlap. A hit therefore stands for every text that could share bytes with it.
        self._patterns_of = [
            [index for index, text in enumerate(literals) if text and _may_overlap(hit, text)]
            for hit in distinct
        ]
        fillers = itertools.islice(_fillers(distinct), max(0, _FEWEST_LITERALS - len(distinct)))
        self._texts = automaton = [*distinct, *fillers]
        self._patterns_of.extend([] for _ in range(len(automaton) - len(distinct)))
        self._search = ahocorasick_rs.BytesAhoCorasick(
            automaton, matchkind=ahocorasick_rs.MatchKind.LeftmostFirst
        ).find_matches_as_indexes

    @classmethod
    def of(cls, literals: Sequence[bytes | None]) -> Prefilter | None:
        """A filter for patterns that require these texts; None if none requires any."""
        return cls(literals) if any(literals) else None

    def refined(self) -> Prefilter | None:
        """The same filter, or one without the text that turned out to be everywhere."""
        if self._too_frequent is None:
            return self
        return self.of([None if text == self._too_frequent else text for text in self._literals])

    def candidates(self, chunk: bytes) -> dict[int, Spans]:
        """For each filtered pattern, the lines that may match; no entry means: all of them."""
        hits = self._search(chunk)
        if len(hits) > 100 + len(chunk) // _DENSE:
            [(most, _)] = collections.Counter(hit for hit, _, _ in hits).most_common(1)
            self._too_frequent = self._texts[most]
            return {}
        return self._lines_of(hits, chunk)

    def _lines_of(self, hits: Sequence[tuple[int, int, int]], chunk: bytes) -> dict[int, Spans]:
        spans: dict[int, Spans] = {index: [] for index in self._filtered}
        latest = dict.fromkeys(self._filtered, -1)
        line_start, line_end = 0, -1
        for hit, start, end in hits:
            if start > line_end:
                line_start = chunk.rfind(b"\n", 0, start) + 1
                line_end = chunk.find(b"\n", end)
                if line_end < 0:
                    line_end = len(chunk)
            for index in self._patterns_of[hit]:
                if latest[index] != line_start:
                    latest[index] = line_start
                    spans[index].append((line_start, line_end))
        return spans


def _may_overlap(one: bytes, other: bytes) -> bool:
    """Whether some text holds both so that they share at least one byte."""
    if one in other or other in one:
        return True
    shorter = min(len(one), len(other))
    return any(
        one[-size:] == other[:size] or other[-size:] == one[:size] for size in range(1, shorter)
    )


def _fillers(literals: Sequence[bytes]) -> Iterator[bytes]:
    """Texts that no sane output contains and that cannot hide a literal."""
    for index in itertools.count():
        filler = b"\x01\x02anubis%d\x03\x04" % index
        if not any(_may_overlap(filler, text) for text in literals):
            yield filler
