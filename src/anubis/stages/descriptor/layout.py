"""Where things stand in a user's file: positions, spots, and the map from paths to them."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

Path = tuple[str | int, ...]
"""Keys and list indexes from the root of the document to a value."""

ROOT: Path = ()


class Position(NamedTuple):
    """What an editor shows: both count from 1, columns in characters."""

    line: int
    column: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Spot:
    """Where one value stands, as offsets into the text.

    For a table opened by a header, ``start`` is the header's bracket; for a table that only
    exists because a dotted key or a longer header mentions it, the place of that mention.
    """

    key: int  #: where its key starts; for a list item, where the item starts
    start: int
    end: int
    is_written: bool = True  #: False: only implied by something deeper


class Lines:
    """Turns offsets into positions."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        self._starts.extend(index + 1 for index, char in enumerate(text) if char == "\n")

    def position(self, offset: int) -> Position:
        """The line and column of an offset."""
        line = bisect.bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Duplicate:
    """A key or table written twice, which TOML forbids."""

    path: Path
    first: int
    second: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """All that is known about the places in a text. Incomplete if the text is not valid TOML."""

    lines: Lines
    spots: Mapping[Path, Spot]
    duplicates: tuple[Duplicate, ...] = ()
    stopped_at: int | None = None  #: where the text stops being understood, if it does

    def spot(self, path: Path) -> Spot:
        """Where a value stands; the nearest enclosing one that is known, if it is not."""
        while path not in self.spots:
            path = path[:-1]
        return self.spots[path]

    def of_key(self, path: Path) -> Position:
        """Where the key of a value starts."""
        return self.lines.position(self.spot(path).key)

    def of_value(self, path: Path) -> Position:
        """Where a value starts."""
        return self.lines.position(self.spot(path).start)
