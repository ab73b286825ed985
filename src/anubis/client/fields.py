"""Read JSON objects field by field, believing nothing.

Whatever a service of another version, or another program, answers: what comes out has the type it
should have, or UnexpectedAnswer says which field was wrong. Fields nobody asks for are ignored.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import MAXYEAR, MINYEAR, datetime
from typing import NoReturn, TypeVar

from anubis.domain.errors import UnexpectedAnswer
from anubis.domain.event import Scalar

Choice = TypeVar("Choice", bound=enum.StrEnum)

LARGEST = 2**63 - 1

_SHOWN = 80  # characters of a value that is not what it should be


class Fields:
    """One JSON object. ``place`` says which, in messages."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, dict):
            _unexpected(place, value, "an object")
        self._values: Mapping[str, object] = value
        self._place = place

    def text(self, name: str) -> str:
        """A string."""
        value = self._values.get(name)
        return value if isinstance(value, str) else self._fail(name, "a string")

    def word(self, name: str) -> str:
        """A string that may be shown as it is: an id, a name. No terminal takes it for commands."""
        value = self.text(name)
        return value if value.isprintable() else self._fail(name, "printable characters")

    def whole(self, name: str) -> int:
        """A whole number, of those that a store can hold."""
        value = self._values.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            self._fail(name, "a whole number")
        return value if abs(value) <= LARGEST else self._fail(name, f"at most {LARGEST}")

    def number(self, name: str) -> float:
        """A number."""
        value = self._values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._fail(name, "a number")
        try:
            return float(value)
        except OverflowError:
            self._fail(name, "a number of usual size")

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._values.get(name)
        return value if isinstance(value, bool) else self._fail(name, "true or false")

    def moment(self, name: str) -> datetime:
        """An instant, with its time zone."""
        try:
            at = datetime.fromisoformat(self.text(name))
        except ValueError:
            self._fail(name, "a moment in ISO 8601")
        if not MINYEAR < at.year < MAXYEAR:
            self._fail(name, "a moment that has a day before and a day after it")
        return at if at.tzinfo is not None else self._fail(name, "a moment with its time zone")

    def moments(self, name: str) -> list[datetime]:
        """A list of instants."""
        values = enumerate(self.texts(name))
        return [Fields({name: text}, f"{self._place}[{at}]").moment(name) for at, text in values]

    def choice(self, name: str, among: type[Choice]) -> Choice:
        """One of the values of an enumeration."""
        try:
            return among(self.text(name))
        except ValueError:
            self._fail(name, f"one of {', '.join(among)}")

    def part(self, name: str) -> Fields:
        """An object within."""
        return Fields(self._values.get(name), f"{self._place}.{name}")

    def parts(self, name: str) -> list[Fields]:
        """A list of objects."""
        return [
            Fields(value, f"{self._place}.{name}[{index}]")
            for index, value in enumerate(self.items(name))
        ]

    def items(self, name: str) -> list[object]:
        """A list of anything."""
        value = self._values.get(name)
        return value if isinstance(value, list) else self._fail(name, "a list")

    def objects(self, name: str) -> list[dict[str, object]]:
        """A list of objects that are not ours to read: passed on as they are."""
        values = self.items(name)
        return [one if isinstance(one, dict) else self._fail(name, "objects") for one in values]

    def texts(self, name: str) -> list[str]:
        """A list of strings."""
        values = self.items(name)
        return [one if isinstance(one, str) else self._fail(name, "strings") for one in values]

    def wholes(self, name: str) -> list[int]:
        """A list of whole numbers."""
        values = enumerate(self.items(name))
        return [Fields({name: one}, f"{self._place}[{at}]").whole(name) for at, one in values]

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        """An object of strings, sorted by name."""
        part = self.part(name)
        return tuple(sorted((key, part.text(key)) for key in part._values))

    def scalars(self, name: str) -> Mapping[str, Scalar]:
        """An object of strings, numbers and the like."""
        part = self.part(name)
        return {key: part._scalar(key) for key in part._values}

    def has(self, name: str) -> bool:
        """Whether there is something, and not null, under this name."""
        return self._values.get(name) is not None

    def maybe_text(self, name: str) -> str | None:
        """A string or nothing."""
        return self.text(name) if self.has(name) else None

    def maybe_word(self, name: str) -> str | None:
        """A string that may be shown, or nothing."""
        return self.word(name) if self.has(name) else None

    def maybe_whole(self, name: str) -> int | None:
        """A whole number or nothing."""
        return self.whole(name) if self.has(name) else None

    def maybe_moment(self, name: str) -> datetime | None:
        """An instant or nothing."""
        return self.moment(name) if self.has(name) else None

    def maybe_part(self, name: str) -> Fields | None:
        """An object within, or nothing."""
        return self.part(name) if self.has(name) else None

    def raw(self) -> Mapping[str, object]:
        """All of it, for whoever passes it on as it is."""
        return self._values

    def _scalar(self, name: str) -> Scalar:
        value = self._values[name]
        if value is not None and not isinstance(value, str | int | float | bool):
            self._fail(name, "a string, a number, true, false or null")
        return value

    def _fail(self, name: str, expected: str) -> NoReturn:
        _unexpected(f"{self._place}.{name}", self._values.get(name), expected)


def _unexpected(place: str, found: object, expected: str) -> NoReturn:
    shown = repr(found)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    raise UnexpectedAnswer(
        f"the service answered something unexpected: {place}: found {shown}, expected {expected}; "
        "is it of the same version as this client?"
    )
