"""Many runs, one line each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import PurePath

from anubis.domain.document import Document
from anubis.domain.run import Run
from anubis.entrypoints.cli.rendering import states, text
from anubis.entrypoints.cli.rendering.columns import Cell, Column, table

_COLUMNS = (
    Column(title="run"),
    Column(title="state"),
    Column(title="benchmark"),
    Column(title="engine"),
    Column(title="submitted"),
    Column(title="took", right=True),
)

_OTHERS = 66
"""Cells that the other columns need, with the spaces between them."""


def runs_table(runs: Sequence[Run], now: datetime, *, width: int | None) -> str:
    """The runs in the order given, cut to a terminal of this width; whole without one."""
    if not runs:
        return "no runs\n"
    return table(_COLUMNS, [_row(run, now, width=width) for run in runs])


def _row(run: Run, now: datetime, *, width: int | None) -> list[Cell]:
    benchmark = text.printable(run.benchmark)
    state = f"{states.symbol(run.state)} {run.state}"
    took = text.duration(run.elapsed(now)) if run.started_at else ""
    return [
        Cell(text=states.short(run.id) if width else run.id),
        Cell(text=state, colour=states.colour(run.state)),
        Cell(text=text.shortened(benchmark, max(8, width - _OTHERS)) if width else benchmark),
        Cell(text=run.engine),
        Cell(text=text.age(run.submitted_at, now)),
        Cell(text=took),
    ]


def history_line(run: Run, document: Document) -> str:
    """As the original printed it: ``id : descriptor : date``."""
    path = PurePath(document.directory, PurePath(document.name).name)
    return f"{run.id} : {text.printable(str(path))} : {text.moment(run.submitted_at)}\n"
