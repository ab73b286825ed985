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


def runs_table(runs: Sequence[Run], now: datetime, *, whole_ids: bool) -> str:
    """The runs in the order given."""
    if not runs:
        return "no runs\n"
    return table(_COLUMNS, [_row(run, now, whole_ids=whole_ids) for run in runs])


def _row(run: Run, now: datetime, *, whole_ids: bool) -> list[Cell]:
    state = f"{states.symbol(run.state)} {run.state}"
    took = text.duration(run.elapsed(now)) if run.started_at else ""
    return [
        Cell(text=run.id if whole_ids else states.short(run.id)),
        Cell(text=state, colour=states.colour(run.state)),
        Cell(text=text.shortened(text.printable(run.benchmark), 32)),
        Cell(text=run.engine),
        Cell(text=text.age(run.submitted_at, now)),
        Cell(text=took),
    ]


def history_line(run: Run, document: Document) -> str:
    """As the original printed it: ``id : descriptor : date``."""
    path = PurePath(document.directory, PurePath(document.name).name)
    return f"{run.id} : {text.printable(str(path))} : {text.moment(run.submitted_at)}\n"
