"""Fire schedules: each firing becomes one run, whoever dies in between.

Runs and schedules are in two stores, and no transaction spans them. So the run of a firing has an
id that follows from the schedule and the moment the firing was due, and a firing takes two steps:

1. add the run to the store of runs, where adding an id that is there changes nothing;
2. move the schedule on, by comparing its version: only the first of several succeeds.

*Nothing is lost.* A schedule stays due until step 2, and step 2 comes after step 1. Whoever dies
before step 2 leaves a schedule that the next one finds due.

*Nothing is doubled.* Whoever repeats step 1 makes the same id. That holds after a crash, for two
services at once and after the clock was set back.

A repetition finds the run that the first attempt left and does not take it for an overlapping one.
If two services look at the same instant, one may decide to leave a firing out while the other, a
moment later, finds no reason to: there is one run then, which the events do not mention. The lock
of the home keeps two services from being there at once.

Trouble with one schedule is its own: it ends as an event of that schedule, and the others go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import structlog

from anubis.domain.errors import (
    AnubisError,
    NotPossible,
    RunNotFound,
    ScheduleNotFound,
    TemporaryError,
    UserError,
)
from anubis.domain.run import ACTIVE, Run, RunId
from anubis.domain.schedule import Schedule, ScheduleId
from anubis.ports.clock import Clock
from anubis.ports.run_reader import RunQuery
from anubis.ports.run_store import RunStore
from anubis.ports.schedule_store import ScheduleQuery, ScheduleStore
from anubis.runtime.supervising import Supervisor
from anubis.stages.scheduling import concluding, deciding
from anubis.stages.scheduling.concluding import Conclusion, Outcome
from anubis.stages.scheduling.deciding import Decision, Due, Standing

LOOK_EVERY = 1.0
"""Seconds: how soon a schedule that somebody adds or resumes is known, and a clock that was set is
noticed. One small question to the store, which a measured program does not feel."""

BATCH = 100
"""Schedules that are fired at the same time."""

MANY = 1000
"""More runs of one schedule than this are never under way, but for a person's own doing."""

Submit = Callable[[Schedule, datetime, RunId], Awaitable[Run]]
"""Plan the firing of a schedule that was due at a moment, and store its run under this id.

Doing it again changes nothing. Raises AnubisError; only a TemporaryError is worth repeating.
"""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Desk:
    """All that is needed to fire schedules."""

    schedules: ScheduleStore
    runs: RunStore
    clock: Clock
    submit: Submit
    expecting: Callable[[], None] = lambda: None  #: told that from now on there is one to come


class Firer:
    """Fires what is due, in the rhythm of the clock."""

    def __init__(self, desk: Desk, supervisor: Supervisor) -> None:
        self._desk = desk
        self._supervisor = supervisor
        self._looked_at: datetime | None = None
        self._is_expecting = False
        self._log = structlog.get_logger("anubis.runtime")

    async def keep_firing(self) -> None:
        """Fire for as long as this runs."""
        while True:
            seconds = LOOK_EVERY
            try:
                await self.turn()
                seconds = await self._rest()
            except TemporaryError as error:
                self._log.warning("schedules_did_not_answer", error=str(error))
            await self._desk.clock.sleep(seconds)

    async def turn(self) -> None:
        """Fire all that is due now. What could not be done stays due, for the next turn."""
        await self._notice_the_clock()
        tried: set[tuple[ScheduleId, int]] = set()
        while True:
            found = await self._desk.schedules.due(self._desk.clock.now(), limit=BATCH)
            fresh = [one for one in found if (one.id, one.version) not in tried]
            if not fresh:
                return
            tried |= {(one.id, one.version) for one in fresh}
            await asyncio.wait([self._start(schedule) for schedule in fresh])

    async def _rest(self) -> float:
        """Seconds until it is time to look again."""
        due = await self._desk.schedules.next_due()
        if due is not None and not self._is_expecting:
            self._desk.expecting()
        self._is_expecting = due is not None
        if due is None:
            return LOOK_EVERY
        seconds = (due - self._desk.clock.now()).total_seconds()
        return min(seconds, LOOK_EVERY) if seconds > 0 else LOOK_EVERY

    def _start(self, schedule: Schedule) -> asyncio.Task[None]:
        """Fire one schedule in a task of its own, so that a defect stays with it."""
        return self._supervisor.start(
            functools.partial(self._attend, schedule),
            name=f"fire-{schedule.id}",
            failed=functools.partial(self._failed, schedule),
        )

    async def _attend(self, schedule: Schedule) -> None:
        try:
            await self._fire(schedule)
        except ScheduleNotFound:  # removed in this moment; a run that it fired stays
            return
        except TemporaryError as error:  # it stays due
            self._log.warning("schedule_not_fired", schedule=schedule.id, error=str(error))

    async def _fire(self, schedule: Schedule) -> None:
        now = self._desk.clock.now()
        waiting = deciding.due(schedule, now)
        active = await self._active(schedule)
        standing = await self._standing(schedule, waiting, active)
        decision = deciding.decide(schedule, waiting, standing, now)
        outcome = await self._submit(schedule, decision)
        if decision.cancels_others:
            outcome = await self._cancel_others(schedule, outcome, active)
        await self._record(schedule, decision, outcome)

    async def _active(self, schedule: Schedule) -> list[RunId]:
        query = RunQuery(family=schedule.id, states=ACTIVE, limit=MANY)
        return [run.id for run in await self._desk.runs.page(query)]

    async def _standing(
        self, schedule: Schedule, waiting: Due, active: Sequence[RunId]
    ) -> Standing:
        query = RunQuery(family=schedule.id, since=waiting.moments[0], limit=MANY)
        known = {run.id for run in await self._desk.runs.page(query)}
        ids = {deciding.firing_id(schedule.id, moment): moment for moment in waiting.moments}
        return Standing(
            begun=frozenset(moment for run_id, moment in ids.items() if run_id in known),
            is_busy=any(run_id not in ids for run_id in active),
        )

    async def _submit(self, schedule: Schedule, decision: Decision) -> Outcome:
        runs: dict[datetime, RunId] = {}
        refused: dict[datetime, str] = {}
        for moment in decision.firings:
            run_id = deciding.firing_id(schedule.id, moment)
            try:
                run = await self._desk.submit(schedule, moment, run_id)
            except TemporaryError:
                raise
            except AnubisError as error:
                refused[moment] = _in_one_line(error)
            else:
                runs[moment] = run.id
        return Outcome(runs=runs, refused=refused)

    async def _cancel_others(
        self, schedule: Schedule, outcome: Outcome, active: Sequence[RunId]
    ) -> Outcome:
        """Cancel every run of the schedule but the newest, which must be there."""
        if not outcome.runs:
            return outcome
        newest = outcome.runs[max(outcome.runs)]
        others = [run_id for run_id in {*active, *outcome.runs.values()} if run_id != newest]
        canceled = []
        for run_id in sorted(others):
            with contextlib.suppress(NotPossible, RunNotFound):  # it has ended, or was purged
                now = self._desk.clock.now()
                await self._desk.runs.request_cancel(run_id, now=now, by=f"schedule {schedule.id}")
                canceled.append(run_id)
        return dataclasses.replace(outcome, canceled=canceled)

    async def _record(self, schedule: Schedule, decision: Decision, outcome: Outcome) -> None:
        now = self._desk.clock.now()
        while not await self._replace(concluding.conclude(schedule, decision, outcome, now)):
            # Somebody was first. Another firer has recorded the same; who pauses a schedule while
            # it fires, and maybe resumes it, should still find the run in its story.
            schedule = await self._desk.schedules.get(schedule.id)
            if not outcome.runs or _is_settled(schedule, max(outcome.runs)):
                return

    async def _replace(self, conclusion: Conclusion) -> bool:
        stored = await self._desk.schedules.replace(conclusion.schedule, events=conclusion.events)
        return stored is not None

    async def _failed(self, schedule: Schedule, error: Exception) -> None:
        """Leave out what was due, with the reason: trying again would not help."""
        now = self._desk.clock.now()
        reason = _in_one_line(error)
        try:
            following = deciding.next_at(schedule, now)
        except AnubisError:  # its time zone is gone from this machine
            following = None
        await self._replace(concluding.gave_up(schedule, reason, now, following))

    async def _notice_the_clock(self) -> None:
        """After a start, and when the clock was set back, look for firings set too far ahead."""
        now, before = self._desk.clock.now(), self._looked_at
        if before is None or now < before - deciding.GRACE:
            await self._mend(now)
        self._looked_at = now

    async def _mend(self, now: datetime) -> None:
        before: ScheduleId | None = None
        while True:
            page = await self._desk.schedules.page(ScheduleQuery(before=before, limit=BATCH))
            for schedule in page:
                with contextlib.suppress(UserError):  # told when it is due, or removed by now
                    if (moment := deciding.mended(schedule, now)) is not None:
                        await self._replace(concluding.mended(schedule, moment, now))
            if len(page) < BATCH:
                return
            before = page[-1].id


def _is_settled(schedule: Schedule, moment: datetime) -> bool:
    """Whether a firing is recorded, or will be because it is still due."""
    is_recorded = schedule.last_at is not None and schedule.last_at >= moment
    return is_recorded or (schedule.next_at is not None and schedule.next_at <= moment)


def _in_one_line(error: Exception) -> str:
    """What went wrong; a descriptor may have several problems, each on a line of its own."""
    return "; ".join(str(error).splitlines()) or type(error).__name__
