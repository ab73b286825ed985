"""Find and remove what a crash may have left: engine folders of runs that have ended."""

from __future__ import annotations

from collections.abc import Sequence

from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.bootstrap.local import LocalApplication
from anubis.domain.errors import NotPossible, RunNotFound
from anubis.domain.run import RunId


async def leftovers(application: LocalApplication) -> Sequence[RunId]:
    """Runs of which the engine keeps something, though the store says they ended or are unknown."""
    kept = await _engine(application).leftovers()
    return [run_id for run_id in kept if not await _is_active(application, run_id)]


async def remove(application: LocalApplication, run_ids: Sequence[RunId]) -> int:
    """Delete what the engine keeps of these runs; one that still goes on is left alone."""
    removed = 0
    for run_id in run_ids:
        try:
            await _engine(application).remove(run_id)
        except NotPossible:
            continue
        removed += 1
    return removed


def _engine(application: LocalApplication) -> ProcessEngine:
    # Never started here, so there is nothing to enter or to close.
    return ProcessEngine(application.settings.runs, revive=None)


async def _is_active(application: LocalApplication, run_id: RunId) -> bool:
    try:
        run = await application.store.get(run_id)
    except RunNotFound:
        return False
    return not run.state.is_terminal
