"""Carry out a command of an original client. The only one there is, is to cancel.

A run is asked to stop. A schedule is paused for good: what it did stays, as it did in the original,
which deleted only what was in the cluster; who wants it back can resume it. ``cascade`` (purge)
also stops the runs that a schedule has fired. Nothing that was measured is ever deleted this way.
"""

from __future__ import annotations

import dataclasses
import secrets

from anubis.bootstrap.service import Service
from anubis.domain import identity
from anubis.domain.action import Action, ActionId, ActionKind
from anubis.domain.errors import NotPossible, RunNotFound, ScheduleNotFound
from anubis.domain.run import ACTIVE, RunId
from anubis.domain.schedule import Schedule
from anubis.entrypoints.api.legacy import keeping, statuses
from anubis.entrypoints.api.legacy.finding import Subject
from anubis.entrypoints.api.legacy.keeping import KeptCommand
from anubis.entrypoints.api.legacy.reading import Commanded
from anubis.ports.run_reader import RunQuery

_MANY = 500
"""Runs canceled at a time."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Canceled:
    """What a cancel command found."""

    has_target: bool
    after: int = 0  #: of a schedule: how many of its events had happened by then


NOTHING = Canceled(has_target=False)


async def cancel(service: Service, subject: Subject | None, by: str, *, cascade: bool) -> Canceled:
    """Stop what the subject is. What has ended, is paused or does not exist is not found."""
    if subject is None or subject.command is not None:
        return NOTHING
    if subject.schedule is not None:
        return await _cancel_schedule(service, subject.schedule, by, cascade=cascade)
    return Canceled(has_target=await _cancel_run(service, RunId(subject.id), by))


async def keep(
    service: Service, commanded: Commanded, addressed: str, canceled: Canceled
) -> ActionId:
    """Store a command with what became of it, and give it an id of its own."""
    now = service.application.clock.now()
    kept = KeptCommand(
        sender=commanded.sender,
        addressed=addressed,
        command=commanded.command,
        cascade=commanded.cascade,
        has_target=canceled.has_target,
        after=canceled.after,
    )
    action = Action(
        id=ActionId(identity.run_id(now, secrets.token_bytes(8))),
        kind=ActionKind.COMMAND,
        client_id=commanded.client_id,
        at=now,
        target=commanded.target,
        envelope=keeping.to_text(kept),
    )
    await service.actions.add(action)
    return action.id


async def _cancel_run(service: Service, run_id: RunId, by: str) -> bool:
    try:
        await service.application.cancel(run_id, by=by)
    except (NotPossible, RunNotFound):  # it has ended, or was purged
        return False
    return True


async def _cancel_schedule(
    service: Service, schedule: Schedule, by: str, *, cascade: bool
) -> Canceled:
    stopped = await _cancel_family(service, schedule, by) if cascade else 0
    if schedule.is_paused and not stopped:
        return NOTHING
    try:
        await service.application.schedules.pause(schedule.id, by=by)
        if cascade:  # a run that it fired a moment ago
            await _cancel_family(service, schedule, by)
        events = await statuses.schedule_events(service, schedule.id)
    except ScheduleNotFound:
        return NOTHING
    return Canceled(has_target=True, after=events[-1].number)


async def _cancel_family(service: Service, schedule: Schedule, by: str) -> int:
    """Stop all runs of a schedule that go on, and say how many those were."""
    stopped, before = 0, None
    while True:
        query = RunQuery(family=schedule.id, states=ACTIVE, before=before, limit=_MANY)
        runs = await service.application.store.page(query)
        for run in runs:
            stopped += await _cancel_run(service, run.id, by)
        if len(runs) < _MANY:
            return stopped
        before = runs[-1].id
