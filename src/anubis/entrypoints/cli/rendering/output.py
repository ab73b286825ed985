"""Lines of a run's output, for reading; ``logs`` prints the bytes themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anubis.domain.logline import LogLine
from anubis.domain.observation import Stream
from anubis.domain.plan import SOLE
from anubis.entrypoints.cli.rendering import text
from anubis.entrypoints.cli.rendering.columns import Cell, painted
from anubis.stages.presentation import shapes

_LONGEST = 500
"""Cells of a line in an excerpt. Some programs write megabytes without a newline."""


def excerpt(lines: Sequence[LogLine]) -> str:
    """Some lines behind a bar, safe to show on a terminal."""
    return "".join(f"  {_bar(line.stream)} {attributed(line)}\n" for line in lines)


def attributed(line: LogLine) -> str:
    """A line as text, with the unit that wrote it where a run has several."""
    who = "" if line.unit == SOLE else f"{text.printable(line.unit)}: "
    return who + readable(line.text)


def readable(raw: bytes) -> str:
    """A line as text; of a line that overwrote itself, what was visible at last."""
    whole = raw.decode("utf-8", "replace").rstrip("\r\n").rpartition("\r")[2]
    return text.printable(text.shortened(whole[: 4 * _LONGEST], _LONGEST))


def prefixed(*, timestamps: bool, names: bool) -> Callable[[LogLine], bytes]:
    """Put the moment, the unit or both before every line, but not before a piece of one."""
    unfinished: set[tuple[str, Stream]] = set()

    def render(line: LogLine) -> bytes:
        source = (line.unit, line.stream)
        goes_on = source in unfinished
        (unfinished.discard if line.text.endswith(b"\n") else unfinished.add)(source)
        if goes_on:
            return line.text
        at = f"{shapes.iso(line.at)} " if timestamps else ""
        return f"{at}{line.unit}: ".encode() + line.text if names else at.encode() + line.text

    return render


def _bar(stream: Stream) -> str:
    return painted(Cell(text="│", colour="red" if stream is Stream.STDERR else "", dim=True))
