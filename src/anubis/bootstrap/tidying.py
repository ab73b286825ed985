"""Find and remove what a crash may have left: folders, containers and pods of runs that ended."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

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
    kubernetes: Sequence[RunId] = ()

    @property
    def runs(self) -> frozenset[RunId]:
        """Of all engines."""
        return frozenset((*self.process, *self.docker, *self.kubernetes))


class _Elsewhere(Protocol):
    """An engine whose units are somebody else's: a daemon's, a cluster's."""

    async def leftovers(self) -> Sequence[RunId]: ...

    async def labelled(self) -> frozenset[RunId]: ...

    async def wipe(self, run_id: RunId) -> None: ...

    async def close(self) -> None: ...


async def leftovers(application: LocalApplication) -> Leftovers:
    """What is there. Whoever does not answer has nothing, as far as we can tell."""
    return Leftovers(
        process=await _ended(application, await _process(application).leftovers()),
        docker=await _ended(application, await _at(application, "docker")),
        kubernetes=await _ended(application, await _at(application, "kubernetes")),
    )


async def remove(application: LocalApplication, found: Leftovers) -> int:
    """Delete what the engines keep of these runs; a program that still goes on is left alone.

    A container or a pod is not: its run has ended, so nobody waits for it.
    """
    removed = set()
    for run_id in found.process:
        with contextlib.suppress(NotPossible):
            await _process(application).remove(run_id)
            removed.add(run_id)
    for name, run_ids in (("docker", found.docker), ("kubernetes", found.kubernetes)):
        if run_ids:
            removed |= await _wipe(application, name, run_ids)
    return len(removed)


async def _wipe(application: LocalApplication, name: str, run_ids: Sequence[RunId]) -> set[RunId]:
    removed = set()
    async with _elsewhere(application, name) as engine:
        for run_id in run_ids:
            with contextlib.suppress(NotPossible):  # the cluster is still at it
                await engine.wipe(run_id)
                removed.add(run_id)
    return removed


async def _at(application: LocalApplication, name: str) -> Sequence[RunId]:
    if name not in application.engines or not _was_used(application, name):
        return ()
    async with _elsewhere(application, name) as engine:
        try:
            return sorted({*await engine.leftovers(), *await engine.labelled()})
        except EngineUnavailable:
            return ()


def _was_used(application: LocalApplication, name: str) -> bool:
    """Whether this home ever had anything there. A cluster is far, and asking it takes time."""
    return name != "kubernetes" or application.settings.cluster.is_dir()


@contextlib.asynccontextmanager
async def _elsewhere(application: LocalApplication, name: str) -> AsyncIterator[_Elsewhere]:
    engine: _Elsewhere
    if name == "docker":
        engine = engines.docker_engine(application.settings)
    else:
        engine = engines.kubernetes_engine(application.settings, application.script_store)
    try:
        yield engine
    finally:
        await engine.close()


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
