"""The tables of ``docs/reference/descriptor.md``, made from the grammar and the model's defaults.

A test compares them with the page, so that the page cannot go stale.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Mapping
from datetime import timedelta

from anubis.stages.descriptor.shapes import Key, ListOf, MapOf, Table
from anubis.stages.descriptor.walking import Entry, entries, table_in

_HEADER = "| field | holds | default | meaning |\n|---|---|---|---|"


def reference() -> str:
    """All tables in Markdown, one for each table of the language."""
    groups = itertools.groupby(entries(), key=lambda entry: entry.table)
    return "\n\n".join(_section(table, list(group)) for table, group in groups)


def _section(table: str, group: list[Entry]) -> str:
    title = "The top of the file"
    if table:
        title = f"`[[{table[:-2]}]]`" if table.endswith("[]") else f"`[{table}]`"
    return "\n".join([f"### {title}\n", _HEADER, *(_row(entry) for entry in group)])


def _row(entry: Entry) -> str:
    key = entry.key
    meaning = key.meaning
    if key.formerly:
        meaning += f" Older name: `{', '.join(key.formerly)}`."
    if key.is_deprecated:
        meaning += f" Older place; write `{key.instead}`."
    cells = (f"`{key.name}`", key.kind.expected, _default(entry), meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(entry: Entry) -> str:
    key = entry.key
    if key.is_required:
        return "required"
    if isinstance(key.kind, MapOf | ListOf) or table_in(key.kind) is not None:
        return "none"
    return _shown(_model_default(entry.owner, key))


def _model_default(table: Table, key: Key) -> object:
    make = table.make
    assert isinstance(make, type)
    assert dataclasses.is_dataclass(make)
    (field,) = (field for field in dataclasses.fields(make) if field.name == key.field)
    return None if field.default is dataclasses.MISSING else field.default


def _shown(value: object) -> str:
    if isinstance(value, timedelta):
        return f'`"{_duration(value)}"`'
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if value in ("", None, ()) or isinstance(value, Mapping):
        return "none"
    if isinstance(value, int) and value >= 2**30:
        return f'`"{value // 2**30}GiB"`'
    text = value.value if isinstance(value, enum.Enum) else value
    return f'`"{text}"`' if isinstance(text, str) else f"`{text}`"


def _duration(value: timedelta) -> str:
    seconds = int(value.total_seconds())
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
