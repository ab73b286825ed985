"""Find and remove what a crash may have left: folders and containers of runs that have ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.bootstrap import engines
from anubis.bootstrap.local import LocalApplication
from anubis.domain.errors import EngineUnavailable, NotPossible, RunNotFound
from anubis.domain.run import RunId


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Leftovers:
    """Runs of which an engine keeps something, though the store says they ended or are unknown."""

    process: Sequence[RunId]
    docker: Sequence[RunId] = ()

    @property
    def runs(self) -> frozenset[RunId]:
        """Of all engines."""
        return frozenset((*self.process, *self.docker))


async def leftovers(application: LocalApplication) -> Leftovers:
    """What is there. A Docker daemon that does not answer has nothing, as far as we can tell."""
    return Leftovers(
        process=await _ended(application, await _process(application).leftovers()),
        docker=await _ended(application, await _at_docker(application)),
    )


async def remove(application: LocalApplication, found: Leftovers) -> int:
    """Delete what the engines keep of these runs; a program that still goes on is left alone.

    A container is not: its run has ended, so nobody waits for it.
    """
    removed = set()
    for run_id in found.process:
        try:
            await _process(application).remove(run_id)
        except NotPossible:
            continue
        removed.add(run_id)
    if found.docker:
        docker = engines.docker_engine(application.settings)
        try:
            for run_id in found.docker:
                await docker.wipe(run_id)
                removed.add(run_id)
        finally:
            await docker.close()
    return len(removed)


async def _at_docker(application: LocalApplication) -> Sequence[RunId]:
    if "docker" not in application.engines:
        return ()
    docker = engines.docker_engine(application.settings)
    try:
        return sorted({*await docker.leftovers(), *await docker.labelled()})
    except EngineUnavailable:
        return ()
    finally:
        await docker.close()


def _process(application: LocalApplication) -> ProcessEngine:
    # Never started here, so there is nothing to enter or to close.
    return ProcessEngine(application.settings.runs, revive=None)


async def _ended(application: LocalApplication, run_ids: Sequence[RunId]) -> list[RunId]:
    return [run_id for run_id in run_ids if not await _is_active(application, run_id)]


async def _is_active(application: LocalApplication, run_id: RunId) -> bool:
    try:
        run = await application.store.get(run_id)
    except RunNotFound:
        return False
    return not run.state.is_terminal
