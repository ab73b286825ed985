"""Text in columns, with or without colour."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import click

from anubis.entrypoints.cli.rendering import text


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A piece of text and how to paint it. ``colour`` empty: as the terminal likes."""

    text: str
    colour: str = ""
    bold: bool = False
    dim: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A title, and on which side the texts are flush."""

    title: str
    right: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], indent: str = "") -> str:
    """A header line and the rows, two spaces apart. Ends with a newline."""
    header = [Cell(text=column.title, dim=True) for column in columns]
    lines = [header, *rows]
    widths = [max(text.width(line[index].text) for line in lines) for index in range(len(columns))]
    return "".join(indent + _line(line, columns, widths) + "\n" for line in lines)


def _line(cells: Sequence[Cell], columns: Sequence[Column], widths: Sequence[int]) -> str:
    parts = []
    for index, (cell, column, cells_wide) in enumerate(zip(cells, columns, widths, strict=True)):
        padding = " " * (cells_wide - text.width(cell.text))
        is_last = index == len(columns) - 1
        before, after = (padding, "") if column.right else ("", "" if is_last else padding)
        parts.append(before + painted(cell) + after)
    return "  ".join(parts).rstrip()


def painted(cell: Cell) -> str:
    """The text with its colour codes; whoever prints it strips them where they do not belong."""
    if not (cell.colour or cell.bold or cell.dim) or not cell.text:
        return cell.text
    return click.style(
        cell.text, fg=cell.colour or None, bold=cell.bold or None, dim=cell.dim or None
    )
