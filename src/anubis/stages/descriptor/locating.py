"""Find where every key and value of a TOML text stands, because ``tomllib`` does not tell.

The scanner relies on ``tomllib`` to judge the text: it understands just enough to walk over valid
TOML, and stops quietly at the first thing it does not understand. It also guards ``tomllib``, whose
time grows with the square of the number of parts of a key and which recurses into nested values:
what is nested too deeply or written too long is refused before ``tomllib`` sees it.
"""

from __future__ import annotations

import re
import tomllib
from typing import Final, NoReturn

from anubis.stages.descriptor.layout import ROOT, Duplicate, Layout, Lines, Path, Position, Spot

MAX_DEPTH: Final = 64
"""Keys and indexes on the way to a value. A descriptor needs six; this leaves room for any."""

MAX_NUMBER_LENGTH: Final = 4000
"""Characters of an unquoted value. Python refuses to read numbers of more than 4,300 digits."""

MAX_SPOTS: Final = 20_000
"""Places remembered; a list of a million numbers should not cost a gigabyte."""

# Each pattern can go only one way at every character, so that none ever goes back far. Possessive
# repeats of groups would say so, but Python before 3.11.5 matches them wrongly (gh-106052).
_BLANK = re.compile(r"[ \t]*")
_BLANK_LINES = re.compile(r"[ \t\n]*(?:#[^\n]*[ \t\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""[^"\\]*(?:(?:\\[\s\S]|"{1,2}(?!"))[^"\\]*)*"{3,5}'
    r"|'''[^']*(?:'{1,2}(?!')[^']*)*'{3,5}"
    r'|"(?!"")[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'(?!'')[^'\n]*'"
)
_QUOTED_KEY = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"' r"|'[^'\n]*'")
_PLAIN = re.compile(r"\d{4}-\d\d-\d\d \d\d:[^\s,\]}#]+|[^\s,\[\]{}#\"'=]+")


class TooMuch(Exception):
    """The text is nested too deeply or has a number too long to be read."""

    def __init__(self, position: Position, found: str, expected: str) -> None:
        super().__init__(found)
        self.position = position
        self.found = found
        self.expected = expected


class _NotUnderstood(Exception):
    """Not valid TOML here; ``tomllib`` will say it better."""


def locate(text: str) -> Layout:
    """Map every path of the text to its place. Line ends must be single line feeds.

    Raises TooMuch where the text would be too much for ``tomllib``.
    """
    scanner = _Scanner(text)
    stopped_at = None
    try:
        scanner.scan()
    except _NotUnderstood:
        stopped_at = scanner.at
    return Layout(
        lines=scanner.lines,
        spots=scanner.spots,
        duplicates=tuple(scanner.duplicates),
        stopped_at=stopped_at,
    )


class _Scanner:
    """One pass over a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = Lines(text)
        self.spots: dict[Path, Spot] = {ROOT: Spot(key=0, start=0, end=len(text))}
        self.duplicates: list[Duplicate] = []
        self.at = 0
        self._items: dict[Path, int] = {}  # how many tables each [[array]] has so far

    def scan(self) -> None:
        """Walk over headers and key/value pairs to the end."""
        table = ROOT
        while self._skip(_BLANK_LINES) < len(self.text):
            if self.text.startswith("[", self.at):
                table = self._header()
            else:
                self._pair(table)
            self._end_of_line()

    def _header(self) -> Path:
        start = self.at
        is_item = self.text.startswith("[[", start)
        self.at += 2 if is_item else 1
        path = ROOT
        key = start
        for name, at in self._key():
            path = self._last_item(path)
            self._imply(path, key)
            path, key = (*path, name), at
            self._guard(path, key)
        self._expect("]]" if is_item else "]")
        return self._item(path, key, start) if is_item else self._table(path, key, start)

    def _last_item(self, path: Path) -> Path:
        """A header that goes through an array of tables means its newest item."""
        return (*path, self._items[path] - 1) if path in self._items else path

    def _imply(self, path: Path, at: int) -> None:
        self.spots.setdefault(path, Spot(key=at, start=at, end=at, is_written=False))

    def _table(self, path: Path, key: int, start: int) -> Path:
        self._note(path, Spot(key=key, start=start, end=self.at))
        return path

    def _item(self, path: Path, key: int, start: int) -> Path:
        index = self._items.get(path, 0)
        self._items[path] = index + 1
        self._imply(path, key)
        item = (*path, index)
        self._note(item, Spot(key=key, start=start, end=self.at))
        return item

    def _pair(self, table: Path) -> None:
        path = table
        key = self.at
        for name, at in self._key():
            self._imply(path, key)
            path, key = (*path, name), at
            self._guard(path, key)
        self._skip(_BLANK)
        self._expect("=")
        self._skip(_BLANK)
        self._value(path, key)

    def _value(self, path: Path, key: int) -> None:
        self._guard(path, self.at)
        start = self.at
        spot = Spot(key=key, start=start, end=start)
        self._note(path, spot, is_value=True)
        if self.text.startswith("[", start):
            self._array(path)
        elif self.text.startswith("{", start):
            self._inline_table(path)
        else:
            self._scalar()
        if self.spots.get(path) is spot:
            self.spots[path] = Spot(key=key, start=start, end=self.at)

    def _array(self, path: Path) -> None:
        self.at += 1
        index = 0
        while True:
            self._skip(_BLANK_LINES)
            if self._accept("]"):
                return
            self._value((*path, index), self.at)
            index += 1
            self._skip(_BLANK_LINES)
            if not self._accept(","):
                self._expect("]")
                return

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        self._skip(_BLANK)
        if self._accept("}"):
            return
        while True:
            self._pair(path)
            self._skip(_BLANK)
            if not self._accept(","):
                self._expect("}")
                return

    def _scalar(self) -> None:
        start = self.at
        quoted = _STRING.match(self.text, start)
        found = quoted or _PLAIN.match(self.text, start)
        if not found:
            raise _NotUnderstood
        self.at = found.end()
        if not quoted and self.at - start > MAX_NUMBER_LENGTH:
            raise TooMuch(
                self.lines.position(start),
                f"a value of {self.at - start:,} characters without quotes",
                f"at most {MAX_NUMBER_LENGTH:,}",
            )

    def _key(self) -> list[tuple[str, int]]:
        """The parts of a dotted key, each with its place."""
        parts: list[tuple[str, int]] = []
        while True:
            self._skip(_BLANK)
            start = self.at
            parts.append((self._key_part(), start))
            if len(parts) > MAX_DEPTH:
                self._refuse_depth(start)
            self._skip(_BLANK)
            if not self._accept("."):
                return parts

    def _key_part(self) -> str:
        bare = _BARE_KEY.match(self.text, self.at)
        found = bare or _QUOTED_KEY.match(self.text, self.at)
        if not found:
            raise _NotUnderstood
        self.at = found.end()
        return found.group() if bare else _unquoted(found.group())

    def _note(self, path: Path, spot: Spot, *, is_value: bool = False) -> None:
        """Remember a place. A header may follow what only implied its table; a value may not."""
        known = self.spots.get(path)
        if known is not None and (known.is_written or is_value):
            self.duplicates.append(Duplicate(path=path, first=known.key, second=spot.key))
        elif len(self.spots) < MAX_SPOTS:
            self.spots[path] = spot

    def _guard(self, path: Path, at: int) -> None:
        if len(path) > MAX_DEPTH:
            self._refuse_depth(at)

    def _refuse_depth(self, at: int) -> NoReturn:
        raise TooMuch(
            self.lines.position(at),
            f"a value nested more than {MAX_DEPTH} levels deep",
            f"at most {MAX_DEPTH} levels",
        )

    def _end_of_line(self) -> None:
        self._skip(_BLANK)
        if self.at < len(self.text) and self.text[self.at] not in "#\n":
            raise _NotUnderstood

    def _skip(self, blank: re.Pattern[str]) -> int:
        found = blank.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.at

    def _accept(self, token: str) -> bool:
        """Step over the token if it comes next."""
        is_next = self.text.startswith(token, self.at)
        self.at += len(token) * is_next
        return is_next

    def _expect(self, token: str) -> None:
        if not self._accept(token):
            raise _NotUnderstood


def _unquoted(key: str) -> str:
    """What a quoted key says. Rare, so tomllib may do it."""
    if key.startswith("'"):
        return key[1:-1]
    try:
        value: str = tomllib.loads(f"key = {key}")["key"]
    except tomllib.TOMLDecodeError:
        raise _NotUnderstood from None
    return value
