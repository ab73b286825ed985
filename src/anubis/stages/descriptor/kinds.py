"""The kinds of single values: how each is checked, converted, and described to editors.

A kind is data: what it expects in words, a function that converts what was written or raises
``Unacceptable``, and its JSON Schema. Tables and lists are in ``shapes``; the kinds with a small
language of their own (durations, cron, patterns, …) are in ``notations``.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol

from anubis.domain.descriptor import TomlValue
from anubis.stages.descriptor import wording
from anubis.stages.descriptor.reporting import Place

Schema = dict[str, object]
"""A piece of JSON Schema, draft 2020-12."""

INVALID: Final = object()
"""Stands for a value that was refused; its problem is already in the report."""


class Unacceptable(Exception):
    """The value is refused. Words that are left empty are those of the kind."""

    def __init__(self, *, expected: str = "", hint: str = "", found: str = "") -> None:
        super().__init__(expected)
        self.expected = expected
        self.hint = hint
        self.found = found


class Kind(Protocol):
    """What a key may hold."""

    @property
    def expected(self) -> str:
        """What belongs here, in words that fit after "expected"."""
        ...

    @property
    def schema(self) -> Schema:
        """The same for editors."""
        ...

    def read(self, value: object, place: Place) -> object:
        """The value of the model, or ``INVALID`` after telling the report why."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Scalar:
    """A single value."""

    expected: str
    convert: Callable[[object, Place], object]
    schema: Schema

    def read(self, value: object, place: Place) -> object:
        """Convert, and put a refusal into words."""
        try:
            return self.convert(value, place)
        except Unacceptable as refusal:
            found = refusal.found or wording.described(value)
            place.refuse(found, refusal.expected or self.expected, refusal.hint)
            return INVALID


def as_text(value: object) -> str:
    """The value if it is text that programs can be given."""
    if not isinstance(value, str):
        hint = "put it in quotes" if isinstance(value, bool | int | float) else ""
        raise Unacceptable(hint=hint)
    if "\0" in value:
        raise Unacceptable(expected="text without NUL characters")
    return value


def as_integer(value: object) -> int:
    """The value if it is a whole number; booleans are not numbers here."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    hint = ""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        hint = f"write it without quotes: {value.strip()[: wording.MAX_SHOWN]}"
    raise Unacceptable(hint=hint)


def _boolean(value: object, _place: Place) -> bool:
    if isinstance(value, bool):
        return value
    hint = ""
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        hint = f"write it without quotes: {value.lower()}"
    raise Unacceptable(hint=hint)


TEXT: Final = Scalar(
    expected="text", convert=lambda value, _: as_text(value), schema={"type": "string"}
)

BOOLEAN: Final = Scalar(expected="true or false", convert=_boolean, schema={"type": "boolean"})


def _filled_text(value: object, _place: Place) -> str:
    text = as_text(value)
    if not text.strip():
        raise Unacceptable
    return text


FILLED_TEXT: Final = Scalar(
    expected="text that is not empty",
    convert=_filled_text,
    schema={"type": "string", "pattern": r"\S"},
)


def integer(minimum: int, maximum: int | None = None) -> Scalar:
    """A whole number within bounds, both included."""
    span = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"

    def convert(value: object, _place: Place) -> int:
        number = as_integer(value)
        if number < minimum or (maximum is not None and number > maximum):
            raise Unacceptable
        return number

    schema: Schema = {"type": "integer", "minimum": minimum}
    if maximum is not None:
        schema["maximum"] = maximum
    return Scalar(expected=f"a whole number {span}", convert=convert, schema=schema)


def choice(
    members: type[enum.StrEnum],
    *,
    formerly: Mapping[str, enum.StrEnum] | None = None,
    ignore_case: bool = False,
) -> Scalar:
    """One of the values of an enumeration, some of them under older names."""
    older = formerly or {}
    names = [member.value for member in members]

    def convert(value: object, place: Place) -> enum.StrEnum:
        text = as_text(value)
        text = text.lower() if ignore_case else text
        if text in older:
            newer = older[text]
            place.deprecate(wording.described(text), wording.quoted(newer), "same meaning")
            return newer
        if text in names:
            return members(text)
        raise Unacceptable(hint=wording.did_you_mean(text, [*names, *older]))

    return Scalar(
        expected=f"one of {wording.listed(names)}",
        convert=convert,
        schema=_choice_schema(names, list(older), ignore_case=ignore_case),
    )


def _choice_schema(names: Sequence[str], older: Sequence[str], *, ignore_case: bool) -> Schema:
    others: list[Schema] = [{"const": name, "deprecated": True} for name in older]
    if ignore_case:  # JSON Schema has no flag for it
        letters = ("".join(f"[{char.upper()}{char}]" for char in name) for name in names)
        others.append({"type": "string", "pattern": f"^({'|'.join(letters)})$"})
    return {"anyOf": [{"enum": list(names)}, *others]} if others else {"enum": list(names)}


def frozen(value: object) -> TomlValue:
    """Any TOML value as one that cannot change. Nesting is bounded by ``locating.MAX_DEPTH``."""
    if isinstance(value, dict):
        return MappingProxyType({key: frozen(child) for key, child in value.items()})
    if isinstance(value, list):
        return tuple(frozen(child) for child in value)
    return value  # type: ignore[return-value]  # tomllib gives nothing else than TomlValue's scalars


def _free_table(value: object, _place: Place) -> TomlValue:
    if not isinstance(value, dict):
        raise Unacceptable
    return frozen(value)


FREE_TABLE: Final = Scalar(
    expected="a table of any values", convert=_free_table, schema={"type": "object"}
)
