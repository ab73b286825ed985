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
    Column(title="benchmark", shortens_to=12),
    Column(title="engine", leaves=1),
    Column(title="submitted", leaves=3),
    Column(title="took", right=True, leaves=2),
)


def runs_table(runs: Sequence[Run], now: datetime, *, width: int | None) -> str:
    """The runs in the order given, cut to a terminal of this width; whole without one."""
    if not runs:
        return "no runs\n"
    is_short = width is not None
    return table(_COLUMNS, [_row(run, now, is_short=is_short) for run in runs], width=width)


def _row(run: Run, now: datetime, *, is_short: bool) -> list[Cell]:
    state = f"{states.symbol(run.state)} {run.state}"
    took = text.duration(run.elapsed(now)) if run.started_at else ""
    return [
        Cell(text=states.short(run.id) if is_short else run.id),
        Cell(text=state, colour=states.colour(run.state)),
        Cell(text=text.printable(run.benchmark)),
        Cell(text=text.printable(run.engine)),
        Cell(text=text.age(run.submitted_at, now)),
        Cell(text=took),
    ]


def history_line(run: Run, document: Document) -> str:
    """As the original printed it: ``id : descriptor : date``."""
    path = PurePath(document.directory, PurePath(document.name).name)
    return f"{run.id} : {text.printable(str(path))} : {text.moment(run.submitted_at)}\n"
