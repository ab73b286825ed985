"""The durable record of a transfer: which bytes of which version are on the disk.

Lines of JSON, only ever added to. A line is written after the bytes that it speaks of were synced,
so it is true even after a power cut. The last line of an item counts; one that was cut off by
a crash is the end.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypedDict, cast

from anubis.adapters.dataset_cache.directory.ranges import Ranges
from anubis.ports.dataset_source import Item

FILE = "journal"


class _Line(TypedDict):
    name: str
    version: str
    size: int | None
    total: int | None
    spans: list[tuple[int, int]]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What is here of one item."""

    version: str
    size_bytes: int | None
    spans: Ranges

    def goes_on(self, item: Item) -> bool:
        """Whether these bytes are of what the source has now; without a version nobody knows."""
        is_same = (self.version, self.size_bytes) == (item.version, item.size_bytes)
        return bool(item.version) and item.size_bytes is not None and is_same


def read(folder: Path) -> Mapping[str, Entry]:
    """What is here of each item, by name."""
    return {
        line["name"]: Entry(
            version=line["version"], size_bytes=line["size"], spans=Ranges(line["spans"])
        )
        for line in _lines(folder)
    }


def progress(folder: Path) -> tuple[int, int | None]:
    """Bytes done and bytes in all, for those who wait for somebody else's transfer."""
    done, total = dict[str, int](), None
    for line in _lines(folder):
        done[line["name"]] = Ranges(line["spans"]).size
        total = line["total"]
    return sum(done.values()), total


def add(folder: Path, item: Item, spans: Ranges, total: int | None) -> None:
    """Note what is on the disk of an item."""
    line = _Line(
        name=item.name,
        version=item.version,
        size=item.size_bytes,
        total=total,
        spans=list(spans),
    )
    with (folder / FILE).open("ab") as file:
        file.write(json.dumps(line).encode() + b"\n")


def _lines(folder: Path) -> Iterator[_Line]:
    try:
        content = (folder / FILE).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return
    for text in content.splitlines():
        try:
            yield cast("_Line", json.loads(text))
        except ValueError:
            return
