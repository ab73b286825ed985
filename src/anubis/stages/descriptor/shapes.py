"""The kinds that hold others: tables with fixed keys, lists, and maps of texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from anubis.stages.descriptor import wording
from anubis.stages.descriptor.kinds import INVALID, Kind, Scalar, Schema, Unacceptable
from anubis.stages.descriptor.reporting import Place

OWN_PREFIX: Final = "x-"
"""Keys and tables that start so belong to the user or to other tools; we accept and ignore them."""

Rule = Callable[[Mapping[str, object], Place], None]
"""Looks at a whole table as it was written, and refuses what does not go together."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """One key of a table."""

    name: str
    kind: Kind
    meaning: str  #: one sentence, for editors and the reference
    is_required: bool = False
    formerly: tuple[str, ...] = ()  #: older names, still understood
    into: str = ""  #: the field of the model, where it differs from the name
    is_deprecated: bool = False
    instead: str = ""  #: what to write in place of a deprecated key

    @property
    def field(self) -> str:
        """The field of the model that takes the value."""
        return self.into or self.name


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table with fixed keys, read into one value of the model."""

    make: Callable[..., object]  #: takes the fields by keyword; absent ones get its defaults
    keys: tuple[Key, ...]
    rules: tuple[Rule, ...] = ()
    expected: str = "a table"

    def read(self, value: object, place: Place) -> object:
        """Read every key, tell all that is wrong, and make the value if nothing is."""
        if not isinstance(value, dict):
            hint = f"write [{wording.dotted(place.path)}] in single brackets"
            is_list = isinstance(value, list)
            place.refuse(wording.described(value), self.expected, hint if is_list else "")
            return INVALID
        table: dict[str, object] = value
        self._refuse_unknown(table, place)
        fields = {
            key.field: self._read_key(key, table, place)
            for key in self.keys
            if self._is_given(key, table, place)
        }
        for rule in self.rules:
            rule(table, place)
        return INVALID if place.report.has_errors else self.make(**fields)

    def _is_given(self, key: Key, table: Mapping[str, object], place: Place) -> bool:
        if any(name in table for name in (key.name, *key.formerly)):
            return True
        if key.is_required:
            place.refuse_absence(key.name, key.kind.expected, _why_required(key))
        return False

    def _read_key(self, key: Key, table: Mapping[str, object], place: Place) -> object:
        older = [name for name in key.formerly if name in table]
        for name in older:
            self._tell_older(key, name, table, place)
        name = key.name if key.name in table else older[0]
        if key.is_deprecated:
            place.child(name).deprecate_key(f"'{name}'", key.instead)
        return key.kind.read(table[name], place.child(name))

    def _tell_older(self, key: Key, name: str, table: Mapping[str, object], place: Place) -> None:
        if key.name in table:
            place.child(name).refuse_key(f"both '{name}' and '{key.name}'", f"only '{key.name}'")
        else:
            place.child(name).deprecate_key(f"'{name}'", f"'{key.name}'", "same meaning")

    def _refuse_unknown(self, table: Mapping[str, object], place: Place) -> None:
        known = {name for key in self.keys for name in (key.name, *key.formerly)}
        for name in table:
            if name not in known and not name.startswith(OWN_PREFIX):
                self._refuse_key(name, place.child(name))

    def _refuse_key(self, name: str, place: Place) -> None:
        names = [key.name for key in self.keys]
        # Comparing spellings is slow; once nothing more is told, nothing more is compared.
        hint = "" if place.report.is_full else _hint(name, names, place.report.homes)
        expected = f"one of {', '.join(names)}"
        place.refuse_key(f"unknown key {wording.quoted(name)}", expected, hint)

    @property
    def schema(self) -> Schema:
        """An object that takes these keys and the user's own, and no others."""
        properties: Schema = {}
        for key in self.keys:
            properties[key.name] = _key_schema(key)
            for name in key.formerly:
                properties[name] = _older_schema(key)
        schema: Schema = {
            "type": "object",
            "properties": properties,
            "patternProperties": {f"^{OWN_PREFIX}": True},
            "additionalProperties": False,
        }
        return schema | _required_schema(self.keys)


def _why_required(key: Key) -> str:
    """Why a key is missed; for a table also what must be in it, to save a second round."""
    reason = f"it is required: {key.meaning}"
    if not isinstance(key.kind, Table):
        return reason
    needed = [inner.name for inner in key.kind.keys if inner.is_required]
    return f"{reason} It needs {' and '.join(needed)}."


def _hint(name: str, names: Sequence[str], homes: Mapping[str, str]) -> str:
    """What was probably meant: a key of this table by its last word, another table's, a slip."""
    for known in names:
        if known.endswith(f"_{name}"):
            return f"did you mean '{known}'?"
    if name in homes:
        return f"'{name}' belongs to {homes[name]}"
    return wording.did_you_mean(name, names)


def _key_schema(key: Key) -> Schema:
    schema = {"description": key.meaning} | key.kind.schema
    if key.is_deprecated:
        schema |= {"deprecated": True, "description": f"{key.meaning} Write {key.instead} instead."}
    return schema


def _older_schema(key: Key) -> Schema:
    words = {"description": f"Older name of {key.name}.", "deprecated": True}
    return key.kind.schema | words


def _required_schema(keys: tuple[Key, ...]) -> Schema:
    """Every required key under one of its names."""
    required = [key.name for key in keys if key.is_required and not key.formerly]
    renamed: list[object] = [
        {"oneOf": [{"required": [name]} for name in (key.name, *key.formerly)]}
        for key in keys
        if key.is_required and key.formerly
    ]
    schema: Schema = {"required": required} if required else {}
    return schema | ({"allOf": renamed} if renamed else {})


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ListOf:
    """A list whose items are all of one kind."""

    item: Kind
    expected: str
    unique: str = ""  #: a key whose text no two items may share
    most: int | None = None  #: items

    def read(self, value: object, place: Place) -> object:
        """Read every item."""
        if not isinstance(value, list):
            hint = f"write [[{wording.dotted(place.path)}]]" if isinstance(value, dict) else ""
            place.refuse(wording.described(value), self.expected, hint)
            return INVALID
        if self.most is not None and len(value) > self.most:
            place.refuse(f"{len(value):,} items", f"at most {self.most:,}")
            return INVALID
        items = tuple(self.item.read(item, place.child(index)) for index, item in enumerate(value))
        if self.unique:
            self._refuse_repeats(value, place)
        return INVALID if INVALID in items else items

    def _refuse_repeats(self, items: list[object], place: Place) -> None:
        first: dict[str, int] = {}
        for index, item in enumerate(items):
            name = item.get(self.unique) if isinstance(item, dict) else None
            if not isinstance(name, str):
                continue
            if name in first:
                line = place.report.layout.of_value(place.child(first[name]).path).line
                place.child(index).child(self.unique).refuse(
                    f"the {self.unique} {wording.quoted(name)} a second time",
                    f"a {self.unique} of its own for each",
                    f"the first is on line {line}",
                )
            first.setdefault(name, index)

    @property
    def schema(self) -> Schema:
        """An array of the items."""
        most = {} if self.most is None else {"maxItems": self.most}
        return {"type": "array", "items": self.item.schema, **most}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class MapOf:
    """A table with keys of the user's choice, all values of one kind."""

    key: Scalar
    value: Scalar
    expected: str

    def read(self, value: object, place: Place) -> object:
        """Read every pair."""
        if not isinstance(value, dict):
            place.refuse(wording.described(value), self.expected)
            return INVALID
        pairs: dict[str, object] = {}
        for name, item in value.items():
            self._check_name(name, place.child(name))
            pairs[name] = self.value.read(item, place.child(name))
        return MappingProxyType(pairs)

    def _check_name(self, name: str, place: Place) -> None:
        try:
            self.key.convert(name, place)
        except Unacceptable as refusal:
            found = f"the name {wording.quoted(name)}"
            place.refuse_key(found, refusal.expected or self.key.expected, refusal.hint)

    @property
    def schema(self) -> Schema:
        """An object with names and values checked."""
        return {
            "type": "object",
            "propertyNames": self.key.schema,
            "additionalProperties": self.value.schema,
        }
