"""Many runs, one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from types import MappingProxyType

from anubis.domain.document import Document
from anubis.domain.run import Run, RunId
from anubis.entrypoints.cli.rendering import states, text
from anubis.entrypoints.cli.rendering.columns import Cell, Column, table

_COLUMNS = (
    Column(title="run"),
    Column(title="state"),
    Column(title="benchmark", shortens_to=12),
    Column(title="engine", leaves=1),
    Column(title="submitted", leaves=4),
    Column(title="took", right=True, leaves=2),
)
_WHY = Column(title="why it waits", shortens_to=16, leaves=3)


def runs_table(
    runs: Sequence[Run],
    now: datetime,
    why: Mapping[RunId, str] = MappingProxyType({}),
    *,
    width: int | None,
) -> str:
    """The runs in the order given, cut to a terminal of this width; whole without one.

    ``why`` says of those that wait what for; if none does, there is no such column.
    """
    if not runs:
        return "no runs\n"
    rows = [_row(run, now, is_short=width is not None) for run in runs]
    if not why:
        return table(_COLUMNS, rows, width=width)
    for run, row in zip(runs, rows, strict=True):
        row.append(Cell(text=text.printable(why.get(run.id, "")), dim=True))
    return table((*_COLUMNS, _WHY), rows, width=width)


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
