"""What collection could not use, counted and put into words. Nothing is dropped in silence.

The limits that collection keeps to are here, beside the words that explain them. Memory is
bounded: kinds of trouble are counted one by one up to ``MOST_KINDS``, the rest in
one number, whatever a program writes.
"""

from __future__ import annotations

from collections.abc import Callable

MOST_KINDS = 50
"""More warnings than this nobody reads; the last one says how many there were."""

MOST_METRICS = 10_000
"""Distinct metrics of a run. Far more than anybody reads; a program that makes up names by
mistake, such as one per step, must not fill our memory."""

LONGEST_NAME = 250
"""Characters in the name of a metric."""

_LONGEST_EXAMPLE = 80
_Kind = tuple[str, str, str]


class Findings:
    """Counts trouble by kind, with the first example of each."""

    def __init__(self) -> None:
        self._sentences: dict[_Kind, Callable[[int], str]] = {}
        self._counts: dict[_Kind, int] = {}
        self._other = 0

    def match_is_no_number(
        self, unit: str, name: str, count: int, example: bytes, line: int
    ) -> None:
        """A pattern matched text that is no number."""
        text = shown(example)
        self._count(
            ("match", unit, name),
            count,
            lambda total: (
                f"Metric {name!r}: {_times(total, 'match')} in the output of {unit!r} "
                f"{_are(total)} not a number; the first is {text} in line {line}."
            ),
        )

    def has_matches(self, name: str) -> bool:
        """Whether a pattern matched at least something, if no number."""
        return any(kind == "match" and found == name for kind, _, found in self._counts)

    def pattern_is_given_up(self, unit: str, name: str) -> None:
        """A pattern matches nothing at all between any two characters."""
        self._count(
            ("given up", unit, name),
            1,
            lambda _: (
                f"Metric {name!r} was not searched to the end in the output of {unit!r}: its "
                "pattern also matches where there is nothing. Write + instead of * in it."
            ),
        )

    def pattern_found_nothing(self, name: str, pattern: str) -> None:
        """A declared metric has no sample: most often its pattern is wrong."""
        self._count(
            ("nothing", "", name),
            1,
            lambda _: f"Metric {name!r} has no value: nothing in the output matches {pattern!r}.",
        )

    def emitted_is_no_number(self, unit: str, name: str, example: str) -> None:
        """A value given to ``emit()`` is neither number nor numeric text."""
        text = shown(example.encode("utf-8", "replace"))
        name = name[:LONGEST_NAME]
        self._count(
            ("value", unit, name),
            1,
            lambda total: (
                f"Metric {name!r}: {_times(total, 'value')} emitted by {unit!r} "
                f"{_are(total)} not a number; the first is {text}."
            ),
        )

    def emitted_is_malformed(self, unit: str, example: bytes) -> None:
        """A line that should be a JSON object is not."""
        text = shown(example)
        self._count(
            ("line", unit, ""),
            1,
            lambda total: (
                f"{_times(total, 'line')} emitted by {unit!r} {_are(total)} not a JSON object "
                f"and {_were(total)} not read; the first is {text}."
            ),
        )

    def name_is_refused(self, unit: str, name: str, count: int) -> None:
        """There are too many metrics, or this name is too long."""
        text = shown(name.encode("utf-8", "replace"))
        self._count(
            ("name", unit, ""),
            count,
            lambda total: (
                f"{_times(total, 'value')} of {unit!r} {_were(total)} not kept, because a run has "
                f"at most {MOST_METRICS} metrics with names of at most {LONGEST_NAME} characters; "
                f"the first such name is {text}."
            ),
        )

    def warnings(self) -> tuple[str, ...]:
        """One sentence for each kind, in order of appearance."""
        texts = [sentence(self._counts[kind]) for kind, sentence in self._sentences.items()]
        if self._other:
            texts.append(f"{self._other} more values or lines of other kinds could not be read.")
        return tuple(texts)

    def _count(self, kind: _Kind, count: int, sentence: Callable[[int], str]) -> None:
        if kind in self._counts:
            self._counts[kind] += count
        elif len(self._counts) < MOST_KINDS:
            self._counts[kind] = count
            self._sentences[kind] = sentence
        else:
            self._other += count


def shown(text: bytes) -> str:
    """Quote foreign text so that it is safe and short on a terminal."""
    decoded = text[: 4 * _LONGEST_EXAMPLE].decode("utf-8", "replace")
    cut = len(decoded) > _LONGEST_EXAMPLE or len(text) > 4 * _LONGEST_EXAMPLE
    return repr(decoded[:_LONGEST_EXAMPLE]) + ("…" if cut else "")


def _times(count: int, noun: str) -> str:
    plural = noun if count == 1 else noun + ("es" if noun.endswith("ch") else "s")
    return f"{count} {plural}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
