"""Walk over the grammar: every key of the language with the table it belongs to."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping

from anubis.stages.descriptor.grammar import DESCRIPTOR
from anubis.stages.descriptor.kinds import Kind
from anubis.stages.descriptor.probes import ProbeKind
from anubis.stages.descriptor.shapes import Key, ListOf, Table


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One key of the language."""

    table: str  #: dotted; lists of tables end with ``[]``; empty for the top of the document
    key: Key
    owner: Table

    @property
    def path(self) -> str:
        """The dotted name of the key."""
        return f"{self.table}.{self.key.name}" if self.table else self.key.name


def entries(table: Table = DESCRIPTOR, prefix: str = "") -> Iterator[Entry]:
    """Every key, each table's own before those of the tables inside it."""
    inner: list[tuple[Table, str]] = []
    for key in table.keys:
        entry = Entry(table=prefix, key=key, owner=table)
        yield entry
        found = table_in(key.kind)
        if found is not None:
            inner.append((found, entry.path + ("[]" if isinstance(key.kind, ListOf) else "")))
    for child, path in inner:
        yield from entries(child, path)


def table_in(kind: Kind) -> Table | None:
    """The table that a kind is, or that its items are."""
    if isinstance(kind, ListOf):
        return table_in(kind.item)
    if isinstance(kind, ProbeKind):
        return kind.table
    return kind if isinstance(kind, Table) else None


@functools.cache
def homes() -> Mapping[str, str]:
    """For every key's name, the header of the first table that has it."""
    found: dict[str, str] = {}
    for entry in entries():
        table = entry.table
        header = f"[[{table[:-2]}]]" if table.endswith("[]") else f"[{table}]"
        found.setdefault(entry.key.name, header if table else "the top of the file")
    return found
