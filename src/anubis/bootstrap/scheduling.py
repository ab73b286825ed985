"""Schedules of this machine: what users ask of them, and how one becomes a run."""

from __future__ import annotations

import dataclasses
import itertools
import os
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from anubis.bootstrap.application import Scheduled, Submission
from anubis.bootstrap.surroundings import service_environment
from anubis.domain import identity
from anubis.domain.descriptor import SINGLE_RUN, Descriptor
from anubis.domain.document import Document
from anubis.domain.errors import RunNotFound, TooMuch, UserError
from anubis.domain.event import EventKind, NewEvent
from anubis.domain.run import Run, RunId
from anubis.domain.schedule import Schedule, ScheduleId
from anubis.ports.schedule_store import ScheduleEvent, ScheduleQuery
from anubis.stages.scheduling import occurrences
from anubis.stages.submission.submitting import Request, submit

if TYPE_CHECKING:
    from anubis.bootstrap.local import LocalApplication


@dataclasses.dataclass(frozen=True, slots=True)
class LocalSchedules:
    """See ``Schedules`` for what its calls promise."""

    application: LocalApplication

    async def add(self, submission: Submission) -> Scheduled:
        """Store a schedule, once its first run could be planned."""
        app = self.application
        parsed = await app.parsed(submission.document)
        if parsed.descriptor.info.scheduling == SINGLE_RUN:
            raise UserError(
                f"info.scheduling: found {SINGLE_RUN!r}, expected a schedule such as '0 3 * * *': "
                "a descriptor without one is submitted as a run"
            )
        # What cannot be planned should be told now and not at three in the morning.
        request = await _request(app, submission)
        async with app.adding_schedule:  # many at once must not pass the limit together
            if (repeated := await self._repeated(submission)) is None:
                await self._must_have_few(submission.submitter)
                await app.must_have_script(submission)
            else:
                app.scripts.must_be_same(submission, await self.document(repeated.id))
            schedule = await app.schedule_store.add(
                _schedule(submission, parsed.descriptor, request, app.clock.now()),
                submission.document,
                f"{submission.submitter} submitted {submission.document.name}",
                key=submission.key,
            )
        await app.wake_runtime()
        return Scheduled(schedule=schedule, warnings=parsed.warnings)

    async def get(self, schedule_id: ScheduleId) -> Schedule:
        """Give a schedule."""
        return await self.application.schedule_store.get(schedule_id)

    async def resolve(self, reference: str) -> ScheduleId:
        """Find the schedule meant by an id, a prefix or a benchmark."""
        return await self.application.schedule_store.resolve(reference)

    async def page(self, query: ScheduleQuery) -> Sequence[Schedule]:
        """Give schedules, newest first."""
        return await self.application.schedule_store.page(query)

    async def document(self, schedule_id: ScheduleId) -> Document:
        """The exact descriptor of a schedule."""
        return await self.application.schedule_store.document(schedule_id)

    async def events(
        self, schedule_id: ScheduleId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[ScheduleEvent]:
        """What happened to a schedule, in order."""
        return await self.application.schedule_store.events(schedule_id, after=after, limit=limit)

    async def upcoming(self, schedule_id: ScheduleId, *, count: int) -> Sequence[datetime]:
        """The next firings; what is due already is the first of them."""
        schedule = await self.get(schedule_id)
        if schedule.next_at is None:
            return ()
        later = occurrences.occurrences(schedule.cron, schedule.time_zone, after=schedule.next_at)
        return list(itertools.islice(itertools.chain([schedule.next_at], later), count))

    async def pause(self, schedule_id: ScheduleId, *, by: str) -> Schedule:
        """Let nothing fire until it is resumed."""

        def paused(schedule: Schedule, now: datetime) -> Schedule | None:
            if schedule.is_paused:
                return None
            return dataclasses.replace(schedule, paused_at=now, next_at=None)

        return await self._change(schedule_id, paused, f"paused by {by}")

    async def resume(self, schedule_id: ScheduleId, *, by: str) -> Schedule:
        """Let it fire again, from now on."""

        def resumed(schedule: Schedule, now: datetime) -> Schedule | None:
            if not schedule.is_paused:
                return None
            return dataclasses.replace(schedule, paused_at=None, next_at=_next(schedule, now))

        schedule = await self._change(schedule_id, resumed, f"resumed by {by}")
        await self.application.wake_runtime()
        return schedule

    async def run_now(self, schedule_id: ScheduleId, *, by: str) -> Run:
        """Submit a run of it now, as one more member of its family."""
        schedule = await self.get(schedule_id)
        run = await submit_run(self.application, schedule, f"because {by} asked for it")

        def fired(one: Schedule, _now: datetime) -> Schedule:
            return dataclasses.replace(one, last_run=run.id, fired=one.fired + 1)

        await self._change(schedule_id, fired, f"{by} asked for run {run.id}", run.id)
        await self.application.wake_runtime()
        return run

    async def remove(self, schedule_id: ScheduleId, *, by: str) -> None:  # noqa: ARG002 - see below
        """Forget it. Its runs stay; who asked is for callers that keep a record of requests."""
        await self.application.schedule_store.delete(schedule_id)

    async def _change(
        self,
        schedule_id: ScheduleId,
        change: Callable[[Schedule, datetime], Schedule | None],
        message: str,
        run: RunId | None = None,
    ) -> Schedule:
        """Change a schedule, whatever others do to it; None from ``change`` leaves it as it is."""
        while True:
            schedule, now = await self.get(schedule_id), self.application.clock.now()
            changed = change(schedule, now)
            if changed is None:
                return schedule
            changed = dataclasses.replace(changed, last_note=message)
            data = {} if run is None else {"run": run}
            event = NewEvent(at=now, kind=EventKind.NOTE, message=message, data=data)
            stored = await self.application.schedule_store.replace(changed, events=[event])
            if stored is not None:
                return stored

    async def _repeated(self, submission: Submission) -> Schedule | None:
        """The schedule that is there by its key, if so: then it makes no further one."""
        if submission.key is None:
            return None
        store = self.application.schedule_store
        return await store.with_key(submission.submitter, submission.key)

    async def _must_have_few(self, submitter: str) -> None:
        """Raise TooMuch if somebody has as many schedules as one person may."""
        most = self.application.settings.max_schedules_per_user
        if await self.application.schedule_store.count_of(submitter, limit=most) >= most:
            raise TooMuch(
                f"{submitter} has {most:,} schedules, and more are not taken; delete some "
                "(the limit is max_schedules_per_user, ANUBIS_MAX_SCHEDULES)"
            )


async def submit_run(
    application: LocalApplication, schedule: Schedule, occasion: str, run_id: RunId | None = None
) -> Run:
    """Plan and store a run of a schedule. Raises UserError for what cannot be done any more."""
    submission = Submission(
        document=await application.schedule_store.document(schedule.id),
        submitter=schedule.submitter,
        environment=os.environ,
        engine=schedule.engine,
        priority=schedule.priority,
    )
    request = await _request(application, submission)
    request = dataclasses.replace(
        request,
        id=run_id,
        plan=dataclasses.replace(request.plan, schedule=schedule.id),
        family=schedule.id,
        occasion=occasion,
    )
    if not await _is_stored(application, run_id):
        await application.must_have_few(schedule.submitter)
        await application.must_have_script(submission)
    return await submit(request, application.store, application.clock)


async def _is_stored(application: LocalApplication, run_id: RunId | None) -> bool:
    """Whether an earlier attempt has stored this run: then it is not one more."""
    if run_id is None:
        return False
    try:
        await application.store.get(run_id)
    except RunNotFound:
        return False
    return True


async def _request(application: LocalApplication, submission: Submission) -> Request:
    """Plan one run of a schedule, with the environment that it will have when it is fired."""
    descriptor = (await application.parsed(submission.document)).descriptor
    environment = service_environment(submission.environment)
    once = dataclasses.replace(submission, environment=environment, wants_it_now=True)
    return await application.requested(once, descriptor)


def _schedule(
    submission: Submission, descriptor: Descriptor, request: Request, now: datetime
) -> Schedule:
    recurrence = descriptor.schedule
    schedule = Schedule(
        id=ScheduleId(identity.run_id(now, secrets.token_bytes(8))),
        version=1,
        benchmark=request.benchmark,
        cron=descriptor.info.scheduling,
        time_zone=recurrence.time_zone,
        overlap=recurrence.overlap,
        catch_up=recurrence.catch_up,
        engine=request.engine,
        priority=request.priority,
        descriptor_sha=submission.document.sha,
        submitter=submission.submitter,
        created_at=now,
    )
    return dataclasses.replace(schedule, next_at=_first(schedule, now))


def _next(schedule: Schedule, now: datetime) -> datetime | None:
    return occurrences.following(schedule.cron, schedule.time_zone, after=now)


def _first(schedule: Schedule, now: datetime) -> datetime:
    moment = _next(schedule, now)
    if moment is None:
        raise UserError(
            f"info.scheduling: found {schedule.cron!r}, which no calendar has; "
            "expected a schedule that fires"
        )
    return moment
