"""Text in columns, with or without colour, cut to fit a terminal."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import click

from anubis.entrypoints.cli.rendering import text

_GAP = 2  # cells between two columns


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A piece of text and how to paint it. ``colour`` empty: as the terminal likes."""

    text: str
    colour: str = ""
    bold: bool = False
    dim: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A title, on which side the texts are flush, and what happens where there is little room.

    Names may be shortened, values never: a number that is cut is a wrong number.
    """

    title: str
    right: bool = False
    shortens_to: int | None = None  #: cells that should remain; None: it is always whole
    leaves: int | None = None  #: lower numbers go first; None: it always stays


Row = Sequence[Cell]


def table(
    columns: Sequence[Column], rows: Sequence[Row], indent: str = "", width: int | None = None
) -> str:
    """A header line and the rows, two spaces apart. Ends with a newline.

    With a ``width``, no line is longer: names are shortened as far as they remain readable, then
    columns leave, then names are shortened further.
    """
    header = [Cell(text=column.title, dim=True) for column in columns]
    lines = [header, *rows]
    widths = _widths(columns, lines)
    if width is not None:
        room = width - text.width(indent)
        kept = _kept(columns, widths, room)
        columns = [columns[index] for index in kept]
        lines = [[line[index] for index in kept] for line in lines]
        widths = _squeezed(columns, [widths[index] for index in kept], room)
        lines = [_shortened(line, columns, widths) for line in lines]
    return "".join(indent + _line(line, columns, widths) + "\n" for line in lines)


def needed(columns: Sequence[Column], rows: Sequence[Row]) -> int:
    """Cells that a table would like to have."""
    header = [Cell(text=column.title) for column in columns]
    return _total(_widths(columns, [header, *rows]))


def _widths(columns: Sequence[Column], lines: Sequence[Row]) -> list[int]:
    return [max(text.width(line[index].text) for line in lines) for index in range(len(columns))]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _kept(columns: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    """Which columns stay, if those that shorten do so to the length that remains readable."""
    least = [
        cells if column.shortens_to is None else min(cells, column.shortens_to)
        for column, cells in zip(columns, widths, strict=True)
    ]
    kept = list(range(len(columns)))
    leaving = [index for index in kept if columns[index].leaves is not None]
    for index in sorted(leaving, key=lambda one: columns[one].leaves or 0):
        if _total([least[one] for one in kept]) <= room:
            break
        kept.remove(index)
    return kept


def _squeezed(columns: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    """Take what is missing from the columns that shorten: first as much as leaves each readable,
    then what is needed, down to one cell.
    """
    squeezed = list(widths)
    shortening = [index for index, column in enumerate(columns) if column.shortens_to is not None]
    for index in shortening:
        _squeeze(squeezed, index, least=columns[index].shortens_to or 1, room=room)
    for index in shortening:
        _squeeze(squeezed, index, least=1, room=room)
    return squeezed


def _squeeze(widths: list[int], index: int, *, least: int, room: int) -> None:
    excess = max(0, _total(widths) - room)
    widths[index] = max(min(least, widths[index]), widths[index] - excess)


def _shortened(line: Row, columns: Sequence[Column], widths: Sequence[int]) -> Row:
    return [
        cell
        if column.shortens_to is None
        else dataclasses.replace(cell, text=text.shortened(cell.text, cells))
        for cell, column, cells in zip(line, columns, widths, strict=True)
    ]


def _line(cells: Row, columns: Sequence[Column], widths: Sequence[int]) -> str:
    parts = []
    for index, (cell, column, cells_wide) in enumerate(zip(cells, columns, widths, strict=True)):
        padding = " " * (cells_wide - text.width(cell.text))
        is_last = index == len(columns) - 1
        before, after = (padding, "") if column.right else ("", "" if is_last else padding)
        parts.append(before + painted(cell) + after)
    return (" " * _GAP).join(parts).rstrip()


def painted(cell: Cell) -> str:
    """The text with its colour codes; whoever prints it strips them where they do not belong."""
    if not (cell.colour or cell.bold or cell.dim) or not cell.text:
        return cell.text
    return click.style(
        cell.text, fg=cell.colour or None, bold=cell.bold or None, dim=cell.dim or None
    )
