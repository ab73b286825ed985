"""Numbers, durations and moments as people read them, and text that is safe to show."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from datetime import datetime, timedelta

import click

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def number(value: float) -> str:
    """Four significant digits; whole numbers in full: ``0.0123``, ``1,234``, ``1.234e-07``."""
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3e}"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def amount(value: float, units: str) -> str:
    """A value with its units; bytes get a prefix: ``12.3 MiB``, ``0.93 %``."""
    if units in ("B", "bytes"):
        return size(value)
    return f"{number(value)} {units}".rstrip()


def size(value: float) -> str:
    """Bytes with a binary prefix."""
    power = 0
    while abs(value) >= 1024 and power < len(_BINARY) - 1:
        value, power = value / 1024, power + 1
    return f"{value:.0f} B" if power == 0 else f"{value:.3g} {_BINARY[power]}"


def duration(span: timedelta) -> str:
    """``0.42 s``, ``9.8 s``, ``1:03 min``, ``2:05:09 h``, ``3 d 4 h``."""
    seconds = max(0.0, span.total_seconds())
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    minutes, hours = whole // 60, whole // 3600
    if hours >= 48:
        return f"{hours // 24} d {hours % 24} h"
    if hours:
        return f"{hours}:{minutes % 60:02}:{whole % 60:02} h"
    return f"{minutes}:{whole % 60:02} min"


def clock(span: timedelta) -> str:
    """A running stopwatch: ``0:09``, ``12:34``, ``1:02:03``."""
    whole = max(0, int(span.total_seconds()))
    hours, minutes, seconds = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def moment(at: datetime) -> str:
    """A moment in the reader's own time zone, to the second."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def age(at: datetime, now: datetime) -> str:
    """``just now``, ``5 min ago``, ``3 h ago``, ``2 d ago``."""
    seconds = (now - at).total_seconds()
    if seconds < 10:
        return "just now"
    for limit, size_, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{int(seconds // size_)} {unit} ago"
    return f"{int(seconds // 86_400)} d ago"


def until(at: datetime, now: datetime) -> str:
    """``now``, ``in 30 s``, ``in 5 min``, ``in 3 h``, ``in 2 d``."""
    seconds = (at - now).total_seconds()
    if seconds < 1:
        return "now"
    for limit, size_, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"in {int(seconds // size_)} {unit}"
    return f"in {int(seconds // 86_400)} d"


def printable(text: str) -> str:
    """Text without anything that moves a cursor or changes a colour, which programs may write."""
    return "".join(_safe(character) for character in text.expandtabs(4))


def _safe(character: str) -> str:
    return "·" if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn") else character


def naturally(name: str) -> list[tuple[int, str]]:
    """A key that sorts names as people do: ``step2`` before ``step10``."""
    # Digits by length, then by themselves: int() refuses numbers of thousands of digits.
    parts = re.split("([0-9]+)", name)
    numbers = [(len(one.lstrip("0")), one.lstrip("0")) for one in parts[1::2]]
    words = [(0, one) for one in parts[0::2]]
    return [part for pair in itertools.zip_longest(words, numbers) for part in pair if part]


def width(text: str) -> int:
    """How many terminal cells a text takes."""
    return sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shortened(text: str, cells: int) -> str:
    """Cut a text to so many cells, with an ellipsis where something is missing."""
    if width(text) <= cells:
        return text
    kept, used = [], 1
    for character in text:
        used += _cells(character)
        if used > cells:
            break
        kept.append(character)
    return "".join(kept) + "…"


def hanging(text: str, cells: int | None, *, after: str = "", indent: str = "") -> list[str]:
    """A text in lines of so many cells, broken between words; one line when None.

    ``after`` is what the first line begins with (its own colours do not count), ``indent`` what
    the others do. A word that is longer than a line is cut, so that nothing is lost.
    """
    if cells is None:
        return [after + text]
    lines, line, room = list[str](), after, cells - width(click.unstyle(after))
    whole = max(1, cells - width(indent))
    words, is_fresh = text.split(" ")[::-1], True
    while words:
        word = words.pop()
        needed = width(word) + (0 if is_fresh else 1)
        if needed <= room:
            line, room, is_fresh = line + ("" if is_fresh else " ") + word, room - needed, False
            continue
        if is_fresh and width(word) > whole:
            head = _head(word, room)
            line, word = line + head, word[len(head) :]
        lines, line, room, is_fresh = [*lines, line.rstrip()], indent, whole, True
        words.append(word)
    return [*lines, line]


def _head(word: str, cells: int) -> str:
    """As many characters of a word as fit, at least one."""
    used = 0
    for index, character in enumerate(word):
        used += _cells(character)
        if used > cells and index:
            return word[:index]
    return word
