r"""Find a piece of text that every match of a pattern must contain.

Searching for fixed text is several times faster than searching for a pattern, so lines that
lack the text are never shown to RE2. A wrong answer would lose samples in silence; therefore
anything this reader does not know for sure (flags, ``\Q``, ``\x``, alternation, …) counts as
"no such text is known", which only costs speed.
"""

from __future__ import annotations

import re
import string

SHORTEST_USEFUL = 3
"""Shorter text is in too many lines to be worth looking for."""

_REPEAT = re.compile(r"\{\d+(,\d*)?\}")
_PLAIN_GROUP = re.compile(r"\((\?:|\?P?<[A-Za-z0-9_]+>)?(?!\?)")
_CLASS_ESCAPES = frozenset("dDsSwWbB")
_REPLACEMENT_CHARACTER = "\ufffd"  # stands for undecodable bytes, so it is not in the raw output


class _Unknown(Exception):
    """The pattern holds something this reader does not understand."""


def required_literal(pattern: str) -> bytes | None:
    """The longest text that every match of ``pattern`` contains, or None if none is certain."""
    if _REPLACEMENT_CHARACTER in pattern or "\n" in pattern:
        return None
    reader = _Reader(pattern)
    try:
        runs = reader.sequence()
    except _Unknown:
        return None
    if reader.position < len(pattern):  # an unbalanced parenthesis
        return None
    longest = max((run.encode() for run in runs), key=len, default=b"")
    return longest if len(longest) >= SHORTEST_USEFUL else None


class _Reader:
    """Walks over a pattern once and gathers runs of characters that must appear as they are."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0

    def sequence(self) -> list[str]:
        """Read up to the end or an unmatched ``)``. With an alternation nothing is required."""
        runs: list[str] = []
        run = ""
        alternated = False
        while (mark := self._peek()) not in ("", ")"):
            if mark == "|":
                alternated = True
                self.position += 1
                continue
            literal, required = self._item(mark)
            least, exactly_once = self._repetition()
            if literal and least and exactly_once:
                run += literal
                continue
            runs.append(run + literal if literal and least else run)
            runs.extend(required if least else [])
            run = ""
        runs.append(run)
        return [] if alternated else runs

    def _peek(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def _item(self, mark: str) -> tuple[str, list[str]]:
        """One item: the character it stands for, or the runs that it requires inside."""
        if mark == "(":
            return "", self._group()
        if mark == "[":
            self._skip_class()
            return "", []
        if mark == "\\":
            return self._escape(), []
        self.position += 1
        if mark in ".^$":
            return "", []
        if mark in "*+?":  # a quantifier where none can be
            raise _Unknown
        return mark, []

    def _group(self) -> list[str]:
        opening = _PLAIN_GROUP.match(self.pattern, self.position)
        if opening is None:  # flags, or syntax of other engines
            raise _Unknown
        self.position = opening.end()
        runs = self.sequence()
        if self._peek() != ")":
            raise _Unknown
        self.position += 1
        return runs

    def _escape(self) -> str:
        escaped = self.pattern[self.position + 1 : self.position + 2]
        self.position += 2
        if escaped in _CLASS_ESCAPES and escaped:
            return ""
        if escaped == "t":
            return "\t"
        if escaped and escaped in string.punctuation:
            return escaped
        raise _Unknown

    def _skip_class(self) -> None:
        """Step over ``[...]``. A ``]`` that comes first is a member, as is ``[:alpha:]``."""
        at = self.position + 1
        if self.pattern[at : at + 1] == "^":
            at += 1
        if self.pattern[at : at + 1] == "]":
            at += 1
        while (mark := self.pattern[at : at + 1]) != "]":
            if mark == "" or self.pattern[at : at + 2] in ("\\Q", "\\E"):
                raise _Unknown
            if self.pattern[at : at + 2] == "[:":
                at = self.pattern.find(":]", at) + 1
                if at == 0:
                    raise _Unknown
            at += 2 if mark == "\\" else 1
        self.position = at + 1

    def _repetition(self) -> tuple[bool, bool]:
        """Whether the item before must appear, and whether it appears exactly once."""
        mark = self._peek()
        repeat = _REPEAT.match(self.pattern, self.position) if mark == "{" else None
        if repeat is None and mark not in ("*", "+", "?"):
            return True, True
        if mark == "":
            return True, True
        self.position += 1 if repeat is None else len(repeat.group())
        if self._peek() == "?":  # as few as possible: changes which match, not whether
            self.position += 1
        return mark == "+", False
