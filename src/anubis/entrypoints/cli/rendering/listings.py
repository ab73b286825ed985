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
    Column(title="submitted", leaves=5),
    Column(title="took", right=True, leaves=2),
)
_WHOSE = Column(title="user", shortens_to=8, leaves=3)
_WHY = Column(title="why it waits", shortens_to=16, leaves=4)


def runs_table(
    runs: Sequence[Run],
    now: datetime,
    why: Mapping[RunId, str] = MappingProxyType({}),
    *,
    width: int | None,
    me: str | None = None,
) -> str:
    """The runs in the order given, cut to a terminal of this width; whole without one.

    ``why`` says of those that wait what for; if none does, there is no such column. Whose they are
    is a column if they are not all of ``me``.
    """
    if not runs:
        return "no runs\n"
    columns, rows = list(_COLUMNS), [_row(run, now, is_short=width is not None) for run in runs]
    if me is not None and any(run.submitter != me for run in runs):
        columns.append(_WHOSE)
        for run, row in zip(runs, rows, strict=True):
            row.append(Cell(text=text.printable(run.submitter)))
    if why:
        columns.append(_WHY)
        for run, row in zip(runs, rows, strict=True):
            row.append(Cell(text=text.printable(why.get(run.id, "")), dim=True))
    return table(columns, rows, width=width)


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
