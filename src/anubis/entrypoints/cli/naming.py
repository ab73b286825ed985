"""Names as users give them: known, or answered with what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from anubis.bootstrap.application import Application
from anubis.domain.errors import RunNotFound, ScheduleNotFound, UserError
from anubis.domain.run import RunId
from anubis.entrypoints.cli.rendering import text


async def run_of(application: Application, name: str) -> RunId:
    """The run meant. Whoever means a schedule is told what to do with one."""
    try:
        return await application.store.resolve(name)
    except RunNotFound:
        schedule_id = await _schedule(application, name)
        if schedule_id is None:
            raise
    raise UserError(
        f"{name} is a schedule, not a run: see 'anubis schedule show {schedule_id}'; "
        f"its runs are listed by 'anubis list --family {schedule_id}'"
    )


async def _schedule(application: Application, name: str) -> str | None:
    try:
        return await application.schedules.resolve(name)
    except ScheduleNotFound:
        return None


def must_be_known(kind: str, names: Sequence[str], known: Collection[str]) -> None:
    """Raise UserError for the first name that the run does not have."""
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {_enumerated(known)}"
            raise UserError(f"the run has no {kind} {name!r}; {hint}")


def _enumerated(known: Collection[str]) -> str:
    return ", ".join(sorted(set(known), key=text.naturally)) or "none so far"
