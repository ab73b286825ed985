"""The application over the stores of this machine: for embedded commands, and inside a service."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from anubis.bootstrap.application import Manifested, Planned, Submission, Submitted
from anubis.domain.demand import Capacity
from anubis.domain.document import Document
from anubis.domain.errors import NotPossible, TooMuch, UserError
from anubis.domain.problem import Problem
from anubis.domain.run import ACTIVE, Run, RunId
from anubis.ports.clock import Clock
from anubis.ports.dataset_cache import DatasetCache
from anubis.ports.engine import Capabilities
from anubis.ports.log_store import LogStore
from anubis.ports.run_store import RunStore
from anubis.ports.schedule_store import ScheduleStore
from anubis.ports.script_store import ScriptStore
from anubis.ports.series_store import SeriesStore
from anubis.runtime import pending
from anubis.settings.model import Settings
from anubis.stages.presentation import watching
from anubis.stages.presentation.watching import Snapshot

if TYPE_CHECKING:
    from anubis.bootstrap.dataset_calls import LocalDatasets
    from anubis.bootstrap.scheduling import LocalSchedules
    from anubis.bootstrap.scripting import LocalScripts
    from anubis.domain.descriptor import Descriptor
    from anubis.stages.descriptor.parsing import Parsed
    from anubis.stages.submission.submitting import Request


INLINE_BYTES = 16 * 1024
"""Descriptors up to this size are read within milliseconds; one of a megabyte takes a second."""


def no_datasets() -> DatasetCache:
    """For an application that holds no data."""
    raise NotPossible("this installation keeps no datasets")


async def as_it_is(_document: str) -> tuple[Problem, ...]:
    """For an application that is the runtime itself."""
    return ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LocalApplication:
    """One installation on this machine. See ``Application`` for what its calls promise."""

    settings: Settings
    clock: Clock
    store: RunStore
    schedule_store: ScheduleStore
    logs: LogStore
    series: SeriesStore
    script_store: ScriptStore
    engines: Mapping[str, Capabilities]
    wake_runtime: Callable[[], Awaitable[None]]  #: starts it if it is not alive
    renew_runtime: Callable[[str], Awaitable[tuple[Problem, ...]]] = as_it_is
    """Has one that is idle leave if its settings are not ours. Takes the name of a document, gives
    warnings about it."""
    open_datasets: Callable[[], DatasetCache] = no_datasets  #: called by the few that need it
    adding_schedule: asyncio.Lock = dataclasses.field(default_factory=asyncio.Lock)

    @property
    def schedules(self) -> LocalSchedules:
        """All that can be done with schedules."""
        # Here and not above: calendars and planning are not for every command.
        from anubis.bootstrap.scheduling import LocalSchedules

        return LocalSchedules(self)

    @property
    def scripts(self) -> LocalScripts:
        """Where code is left that documents name as their ``script``."""
        # Here and not above: only a few submissions bring code.
        from anubis.bootstrap.scripting import LocalScripts

        return LocalScripts(self)

    @property
    def datasets(self) -> LocalDatasets:
        """All that can be done with datasets."""
        # Here and not above: only a few commands look at datasets.
        from anubis.bootstrap.dataset_calls import LocalDatasets

        return LocalDatasets(cache=self.open_datasets())

    def validate(self, document: Document) -> Parsed:
        """Read a descriptor. Raises DescriptorInvalid with all its problems."""
        # Here and not above: the grammar of descriptors takes longer to import than most commands
        # take in all, and only three commands read descriptors.
        from anubis.stages.descriptor import parsing

        return parsing.parse(document)

    async def parsed(self, document: Document) -> Parsed:
        """``validate`` without keeping others waiting for a large descriptor."""
        if len(document.content) <= INLINE_BYTES:
            return self.validate(document)
        return await asyncio.to_thread(self.validate, document)

    async def requested(self, submission: Submission, descriptor: Descriptor) -> Request:
        """``request`` without keeping others waiting for a large descriptor."""
        if len(submission.document.content) <= INLINE_BYTES:
            return self.request(submission, descriptor)
        return await asyncio.to_thread(self.request, submission, descriptor)

    async def plan(self, submission: Submission) -> Planned:
        """What a run of this descriptor would be made of."""
        from anubis.bootstrap import planning

        return await planning.planned(self, submission)

    async def manifest(self, submission: Submission, namespace: str) -> Manifested:
        """What Kubernetes would get for a run of this descriptor."""
        from anubis.bootstrap import manifests

        return await manifests.manifested(self, submission, namespace)

    async def submit(self, submission: Submission) -> Submitted:
        """Store a run of this descriptor and have the runtime take it up."""
        from anubis.stages.submission.submitting import submit

        parsed = await self.parsed(submission.document)
        request = await self.requested(submission, parsed.descriptor)
        repeated = await self._repeated(submission)
        if repeated is None:
            await self.must_have_few(submission.submitter)
            await self.must_have_script(submission)
        else:
            self.scripts.must_be_same(submission, await self.store.document(repeated.id))
        stale = await self.renew_runtime(submission.document.name)
        run = await submit(request, self.store, self.clock)
        await self.wake_runtime()
        return Submitted(run=run, warnings=(*parsed.warnings, *stale))

    async def _repeated(self, submission: Submission) -> Run | None:
        """The run that is there by its key, if so: then it makes no further one."""
        if submission.key is None:
            return None
        return await self.store.with_key(submission.submitter, submission.key)

    async def must_have_script(self, submission: Submission) -> None:
        """Raise UserError if code is to be used that is not here. To ask counts as its use."""
        if submission.document.script:
            await self.scripts.must_have(submission.document.script)

    def request(self, submission: Submission, descriptor: Descriptor) -> Request:
        """Plan a run. Raises UserError for what the engine cannot do, or could never give."""
        from anubis.bootstrap import submitting

        wanted = submission.engine or submitting.engine_of(descriptor)
        engine = self.engine(wanted or self.settings.engines.partition(",")[0])
        with submitting.placing_problems(submission.document):
            request = submitting.request(submission, descriptor, engine, slots=self.settings.slots)
            submitting.must_fit(request, lambda: self.capacities)
            submitting.must_be_fetchable(request, self.settings)
        return request

    async def must_have_few(self, submitter: str) -> None:
        """Raise TooMuch if somebody has more runs that have not ended than one person may."""
        most = self.settings.max_active_per_user
        counts = await self.store.counts()
        if sum(counts.get(state, 0) for state in ACTIVE) < most:
            return  # all people together have fewer: no need to count
        if await self.store.active_of(submitter, limit=most) >= most:
            raise TooMuch(
                f"{submitter} has {most:,} runs that have not ended, and more are not taken; "
                "cancel some, or wait (the limit is max_active_per_user, ANUBIS_MAX_ACTIVE)"
            )

    @property
    def capacities(self) -> Mapping[str, Capacity]:
        """What each engine has in all. Asked for the first time, it may take a moment."""
        from anubis.bootstrap import capacity

        return capacity.capacities(self.settings)

    async def waiting(self, run: Run) -> str:
        """Why a run has not started; empty for one that has."""
        return (await self.waitings([run])).get(run.id, "")

    async def waitings(self, runs: Sequence[Run]) -> Mapping[RunId, str]:
        """Why those of these runs that wait do so."""
        from anubis.bootstrap import waiting

        return await waiting.sentences(runs, self.store, lambda: self.capacities)

    async def known_as(self, person: str) -> str:
        """Their own."""
        return person

    def watch(self, run_id: RunId) -> AsyncGenerator[Snapshot, None]:
        """Follow a run to its end. A runtime that was killed is started again."""
        care, why = self.wake_runtime, self.waiting
        return watching.watch(run_id, self.store, self.clock, care=care, why=why)

    async def cancel(self, run_id: RunId, *, by: str) -> Run:
        """Ask for a run to be stopped. Raises NotPossible if it has ended."""
        run = await self.store.request_cancel(run_id, now=self.clock.now(), by=by)
        await self.wake_runtime()
        return run

    async def purge(self, run_id: RunId, *, by: str) -> None:
        """Forget a run with all it produced; one that goes on is canceled first."""
        run = await self.store.get(run_id)
        if not run.state.is_terminal:
            try:
                await self.cancel(run_id, by=by)
            except NotPossible:
                run = await self.store.get(run_id)  # it ended by itself in this moment
            async for snapshot in self.watch(run_id):
                run = snapshot.run
        await self.logs.delete(run_id)
        await self.series.delete(run_id)
        await self.store.delete(run_id)

    async def ensure_runtime(self) -> None:
        """Start the runtime if some run or schedule needs it and none is alive, also if there is
        something to remove of runs that have ended.
        """
        kept = (self.settings.runs, self.settings.docker, self.settings.cluster)
        if pending.has_leftovers(*kept) or await pending.has_work(self.store, self.schedule_store):
            await self.wake_runtime()

    def engine(self, name: str) -> Capabilities:
        """What an engine can do. Raises UserError for one that this installation has not."""
        try:
            return self.engines[name]
        except KeyError:
            from anubis.bootstrap import engines

            known = ", ".join(sorted(self.engines))
            raise UserError(
                f"info.execution_engine: found {name!r}, expected one of: {known}. "
                f"{engines.absence(self.settings, name)}"
            ) from None
