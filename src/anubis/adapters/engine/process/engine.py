"""The process engine: units are processes of this machine, guarded by shims that outlive us.

All that is known about a run is in its directory. This class writes the specification, asks the
zygote for a shim, and reads along; whatever it holds in memory only makes that faster.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from anubis.adapters.engine.process import following, removing, specifying, watching
from anubis.adapters.engine.process.capabilities import PROCESS
from anubis.adapters.engine.process.fingerprinting import Fingerprinter
from anubis.adapters.engine.process.gpus import GpuBook, Gpus
from anubis.adapters.engine.process.guardian import files, recovery
from anubis.adapters.engine.process.link import ZygoteLink
from anubis.domain.dataset import Report
from anubis.domain.document import Fingerprint
from anubis.domain.errors import EngineUnavailable, NotPossible
from anubis.domain.observation import (
    Condition,
    EmittedChunk,
    EndCause,
    Observation,
    OutputChunk,
    ResourceReading,
)
from anubis.domain.plan import SOLE, Plan
from anubis.domain.run import RunId

THREAD_BYTES = 256 * 1024
"""Reading more than this takes long enough to be worth a thread."""

BATCH_ITEMS = 1000
REMOVE_SECONDS = 15.0
PAUSE_SECONDS = 0.02


class ProcessEngine:
    """Runs as processes. Enter it, or call ``close``: runs go on without it either way."""

    def __init__(self, directory: Path, *, revive: tuple[str, ...] | None) -> None:
        # By its real name: a home reached through a link is the same home, with the same runs.
        self._directory = directory.resolve()
        self._link = ZygoteLink(self._directory, revive, self._note_end)
        self._ends: dict[RunId, asyncio.Event] = {}
        self._held: dict[RunId, watching.Pipes] = {}
        self._gpus = Gpus()
        self._books: dict[RunId, GpuBook] = {}
        self._fingerprinter = Fingerprinter(self._directory.parent / "cache", self._gpus)
        self.capabilities = PROCESS

    async def __aenter__(self) -> Self:
        removing.forget_strays(self._directory)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # After a defect of ours we leave as if we had been killed: the zygote starts another.
        await self.close(says_goodbye=error is None)

    async def close(self, *, says_goodbye: bool = True) -> None:
        """Leave; runs in flight go on, and are found again by the next engine."""
        await self._link.close(says_goodbye=says_goodbye)
        for run_id in list(self._held):
            self._let_go(run_id)

    def rouse(self) -> None:
        """Start the zygote before the first run needs it, for it starts us again if we are killed.

        Does nothing where that is not possible: the next run will say why.
        """
        with contextlib.suppress(OSError):
            self._link.prepare()

    async def prepare(self, plan: Plan, report: Report) -> None:
        """See the port. Programs of this machine are here already."""

    async def start(self, run_id: RunId, plan: Plan, unit: str = SOLE) -> None:
        """See the port. A run is started once because only one journal can be created."""
        directory = self._run_directory(run_id)
        if files.was_started(str(directory)):
            return
        try:
            specifying.write_spec(directory, run_id, plan)
            self._hold(run_id)
        except OSError as error:
            raise EngineUnavailable(f"{directory} cannot be used: {error.strerror}") from error
        await self._link.start(run_id)

    async def observe(self, run_id: RunId, unit: str = SOLE) -> AsyncIterator[Observation]:
        """See the port."""
        directory = self._run_directory(run_id)
        known = self._unit_of(directory)
        if known is None:
            yield watching.lost(unit, "the run was never started on this machine")
            return
        if not files.has_ended(str(directory)):
            self._hold(run_id)
        follower = following.Follower(directory, unit)
        watch = watching.Watch(directory, unit, lambda: self._link.serves(run_id))
        try:
            while True:
                end = self._ends.setdefault(run_id, asyncio.Event())
                ended = await watch.ended()  # first, so that the last turn sees everything
                async for observation in _read(follower, follower.turn()):
                    watch.note_news()
                    yield await self._with_gpus(run_id, observation)
                if ended is not None:
                    break
                await watch.wait(end)
            async for observation in _read(follower, follower.rest(ended)):
                yield observation
            self._let_go(run_id)
        finally:
            follower.close()

    async def started(self, run_id: RunId) -> frozenset[str]:
        """See the port."""
        unit = self._unit_of(self._run_directory(run_id))
        return frozenset() if unit is None else frozenset({unit})

    async def probe(self, run_id: RunId, plan: Plan, unit: str) -> AsyncIterator[Condition]:
        """See the port."""
        raise NotPossible("the process engine runs plans of one unit")
        yield  # type: ignore[unreachable] # makes it a generator

    async def stop(
        self,
        run_id: RunId,
        *,
        grace: timedelta,
        cause: EndCause,
        units: Collection[str] | None = None,
    ) -> None:
        """See the port. The request is a file, so that a shim not yet awake will find it."""
        directory = self._run_directory(run_id)
        if not directory.is_dir() or files.has_ended(str(directory)):
            return
        try:
            specifying.write_stop(directory, grace, cause)
        except FileNotFoundError:  # removed at this moment
            return
        except OSError as error:
            raise EngineUnavailable(f"the request to stop cannot be written: {error}") from error

    async def remove(self, run_id: RunId) -> None:
        """See the port. Raises NotPossible while the run goes on."""
        directory = self._run_directory(run_id)
        if not directory.is_dir():
            return
        if not files.has_ended(str(directory)):
            if watching.is_guarded(directory):
                raise NotPossible(f"run {run_id} still goes on; stop it first")
            await asyncio.to_thread(_recover, str(directory))
        self._let_go(run_id)
        await asyncio.to_thread(removing.delete, directory)

    async def leftovers(self) -> Sequence[RunId]:
        """See the port."""
        if not self._directory.is_dir():
            return ()
        return tuple(sorted(RunId(e.name) for e in self._directory.iterdir() if e.is_dir()))

    async def fingerprint(self, plan: Plan) -> Fingerprint:
        """See the port."""
        return await self._fingerprinter.take(plan)

    def _run_directory(self, run_id: RunId) -> Path:
        if not run_id or "/" in run_id or not run_id.isprintable() or run_id.startswith("."):
            raise NotPossible(f"{run_id!r} cannot be the name of a run")
        return self._directory / run_id

    async def _with_gpus(self, run_id: RunId, observation: Observation) -> Observation:
        """Complete a resource reading by what the GPUs did, when there are any."""
        if not isinstance(observation, ResourceReading) or not self._gpus.may_exist:
            return observation
        book = self._books.get(run_id)
        if book is None:
            book = GpuBook(self._run_directory(run_id), self._gpus)
            self._books[run_id] = book
        values = await asyncio.to_thread(book.values_for, observation)
        return dataclasses.replace(observation, gpus=values)

    def _note_end(self, run_id: RunId) -> None:
        """The zygote saw a run ending, or died and sees nothing any more."""
        if end := self._ends.pop(run_id, None):
            end.set()
        if files.has_ended(str(self._run_directory(run_id))):
            self._let_go(run_id)

    def _hold(self, run_id: RunId) -> None:
        if run_id not in self._held:
            self._held[run_id] = watching.Pipes(self._run_directory(run_id))

    def _let_go(self, run_id: RunId) -> None:
        self._ends.pop(run_id, None)
        self._books.pop(run_id, None)
        if pipes := self._held.pop(run_id, None):
            pipes.close()

    @staticmethod
    def _unit_of(directory: Path) -> str | None:
        """Who runs there, None if nobody ever did. A restarted machine has forgotten the name."""
        spec = files.read_json(files.live(str(directory)), files.SPEC)
        status = files.read_json(str(directory), files.STATUS)
        if known := spec or status:
            return str(known["unit"])
        return "benchmark" if files.was_started(str(directory)) else None


def _recover(directory: str) -> None:
    """Leave no process of a run whose shim died unseen, even if another is at it already."""
    give_up = time.monotonic() + REMOVE_SECONDS
    with contextlib.suppress(OSError, ValueError):
        while not recovery.recover(directory, "removed") and time.monotonic() < give_up:
            time.sleep(PAUSE_SECONDS)


async def _read(
    follower: following.Follower, observations: Iterator[Observation]
) -> AsyncIterator[Observation]:
    """Iterate here when little is to be read, in a thread when it would block the loop."""
    if follower.pending_bytes() < THREAD_BYTES:
        for observation in observations:
            yield observation
        return
    while batch := await asyncio.to_thread(_batch, observations):
        for observation in batch:
            yield observation


def _batch(observations: Iterator[Observation]) -> list[Observation]:
    """As many as are worth one trip to a thread: about a chunk of bytes."""
    batch: list[Observation] = []
    size = 0
    for observation in observations:
        batch.append(observation)
        if isinstance(observation, OutputChunk | EmittedChunk):
            size += len(observation.data)
        if size >= following.CHUNK_BYTES or len(batch) >= BATCH_ITEMS:
            break
    return batch
