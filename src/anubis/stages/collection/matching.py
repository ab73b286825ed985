"""Find the samples that patterns see in a block of output.

What is promised: the result equals trying every pattern on every line by itself, with the line
decoded as UTF-8 and undecodable bytes replaced. A pattern never matches across lines, and every
match of a line counts. User patterns run on RE2 only, whose time is linear in the text.

How it gets fast: one Aho-Corasick pass finds the lines that hold a text some pattern requires
(``literal``); these lines are joined per pattern and given to RE2 in one go. Patterns without
such a text see the whole block. ``never_nl`` and ``(?m)`` make RE2 treat a joined block as it
would treat the single lines; the few operators for which that fails are matched line by line.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence

import re2

from anubis.domain import errors
from anubis.domain.metric import MetricDefinition
from anubis.stages.collection import literal, number
from anubis.stages.collection.prefiltering import Prefilter, Spans

CHUNK = 512 * 1024
"""Bytes given to the matchers at once: fits the second-level cache, and the work per chunk and
pattern hardly counts. 840, 1010, 1160, 1290, 1440 MB/s with 64, 128, 256, 512, 1024 KiB."""

PREFILTER_FROM = 32 * 1024
"""Bytes of output from which the prefilter pays: building it takes half a millisecond, which
short runs need not spend."""

MOST_EMPTY = 100_000
"""Matches of nothing at all after which a pattern is given up. One like ``\\d*`` matches nothing
between any two bytes: a gigabyte of output would keep us busy for an hour."""

_NEEDS_SINGLE_LINES = re.compile(r"\\[AzCQ]|\(\?[A-Za-z]*-[A-Za-z]*m")
"""Operators that speak of the text as a whole, or that step over newlines in spite of RE2."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Rejected:
    """Matches of one metric that are no numbers."""

    count: int
    example: bytes  #: the first of them
    line: int  #: of the example, counted from the first line of the block as 0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What one pattern found in a block."""

    definition: MetricDefinition
    values: Sequence[float]
    rejected: Rejected | None
    gave_up: bool = False  #: it matched nothing too often and is not tried again


class Matcher:
    """All patterns of a run, compiled once. Safe to use from one thread at a time."""

    def __init__(self, definitions: Sequence[MetricDefinition]) -> None:
        """Raises UserError if a pattern is invalid or has several groups."""
        self._patterns = [_Pattern(definition) for definition in definitions]
        self._filter: Prefilter | None = None
        self._seen = 0

    def find(self, block: bytes) -> list[Found]:
        """What the patterns find in a block of whole lines or in one piece of a line.

        The values of a metric come in the order of the text.
        """
        if not self._patterns:
            return []
        if self._seen <= PREFILTER_FROM < self._seen + len(block):
            self._filter = self._prefilter()
        self._seen += len(block)
        found: list[Found] = []
        for start, end in _chunks(block):
            found.extend(self._find_in_chunk(block, start, end))
        return found

    def _prefilter(self) -> Prefilter | None:
        patterns = [pattern.definition.pattern for pattern in self._patterns]
        return Prefilter.of([literal.required_literal(pattern) for pattern in patterns])

    def _find_in_chunk(self, text: bytes, start: int, end: int) -> Iterator[Found]:
        chunk = text[start:end]
        lines = self._candidates(chunk)
        for index, pattern in enumerate(self._patterns):
            spans = lines.get(index)
            if pattern.given_up or spans == []:
                continue
            excerpt = chunk
            if spans is not None:
                excerpt = b"\n".join([chunk[first:last] for first, last in spans])
            values, rejected = pattern.values(excerpt)
            if rejected:
                rejected = self._locate(rejected, text, start, spans)
            if values or rejected or pattern.given_up:
                yield Found(
                    definition=pattern.definition,
                    values=values,
                    rejected=rejected,
                    gave_up=pattern.given_up,
                )

    def _candidates(self, chunk: bytes) -> Mapping[int, Spans]:
        """The lines each filtered pattern needs to see; the others see all."""
        if self._filter is None:
            return {}
        lines = self._filter.candidates(chunk)
        self._filter = self._filter.refined()
        return lines

    @staticmethod
    def _locate(rejected: Rejected, text: bytes, start: int, spans: Spans | None) -> Rejected:
        """Translate a line number within an excerpt into one within the block."""
        line = rejected.line
        if spans is not None:
            line = text.count(b"\n", start, start + spans[line][0])
        return dataclasses.replace(rejected, line=line + text.count(b"\n", 0, start))


def _chunks(text: bytes) -> Iterator[tuple[int, int]]:
    """Bounds of chunks that end before a newline, each about ``CHUNK`` bytes."""
    start, size = 0, len(text) - text.endswith(b"\n")
    while size - start > CHUNK + CHUNK // 2:  # a small rest is not worth a chunk of its own
        end = text.rfind(b"\n", start, start + CHUNK)
        if end < 0:
            end = text.find(b"\n", start, size)
        if end < 0:
            break
        yield start, end
        start = end + 1
    yield start, size


class _Pattern:
    """One compiled pattern."""

    def __init__(self, definition: MetricDefinition) -> None:
        self.definition = definition
        options = re2.Options()
        options.never_nl = True
        options.log_errors = False
        try:
            self._compiled = re2.compile(f"(?m){definition.pattern}", options)
        except re2.error as error:
            raise errors.UserError(
                f"The pattern of metric {definition.name!r} is not valid: {_reason(error)}"
            ) from error
        if self._compiled.groups > 1:
            raise errors.UserError(
                f"The pattern of metric {definition.name!r} has {self._compiled.groups} groups; "
                "use at most one, and (?:...) for the others."
            )
        self._group = self._compiled.groups
        self._single_lines = bool(_NEEDS_SINGLE_LINES.search(definition.pattern))
        self._may_be_empty = self._compiled.fullmatch(b"") is not None
        self._empty = 0

    @property
    def given_up(self) -> bool:
        """Whether it matched nothing at all too often."""
        return self._empty >= MOST_EMPTY

    def values(self, excerpt: bytes) -> tuple[Sequence[float], Rejected | None]:
        """The numbers in lines joined by newlines, and what matched but is no number."""
        if not excerpt.isascii():
            excerpt = excerpt.decode("utf-8", "replace").encode()
        if self._single_lines:
            return self._values_line_by_line(excerpt)
        if self._may_be_empty:
            return self._sort_out(excerpt, 0)
        group = self._group
        spans = [match.span(group) for match in self._compiled.finditer(excerpt)]
        values = number.all_numbers([excerpt[start:end] for start, end in spans])
        if values is not None:
            return values, None
        return self._sort_out(excerpt, 0)

    def _values_line_by_line(self, excerpt: bytes) -> tuple[Sequence[float], Rejected | None]:
        values: list[float] = []
        rejected: Rejected | None = None
        for index, line in enumerate(excerpt.split(b"\n")):
            if self.given_up:
                break
            more, bad = self._sort_out(line, index)
            values.extend(more)
            if bad and rejected:
                bad = dataclasses.replace(rejected, count=rejected.count + bad.count)
            rejected = bad or rejected
        return values, rejected

    def _sort_out(self, excerpt: bytes, first_line: int) -> tuple[list[float], Rejected | None]:
        """The careful way, for text in which some match is no number."""
        values: list[float] = []
        count = 0
        example, position = b"", 0
        for text, start in self._matches(excerpt):
            value = number.number(text)
            if value is not None:
                values.append(value)
                continue
            if not count:
                example, position = text, start
            count += 1
        if not count:
            return values, None
        line = first_line + excerpt.count(b"\n", 0, position)
        return values, Rejected(count=count, example=example, line=line)

    def _matches(self, excerpt: bytes) -> Iterator[tuple[bytes, int]]:
        """Text and place of each match. A group that took no part gives empty text."""
        last_start = -1
        for match in self._compiled.finditer(excerpt):
            start, end = match.span()
            if start == end == last_start:  # re2 reports an empty match twice
                continue
            last_start = -1
            if start == end:
                last_start = start
                self._empty += 1
                if self.given_up:
                    return
            first, last = match.span(self._group)
            yield (excerpt[first:last] if first >= 0 else b""), start


def _reason(error: Exception) -> str:
    """What RE2 says, without the flag that we put in front of the pattern."""
    said = error.args[0] if error.args else ""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return text.replace("(?m)", "", 1)
