"""Find what an action id names: a command, a run or a schedule; and whose it is."""

from __future__ import annotations

import dataclasses

from anubis.bootstrap.service import Service
from anubis.domain.action import Action, ActionId, ActionKind
from anubis.domain.errors import RunNotFound, ScheduleNotFound
from anubis.domain.run import Run, RunId
from anubis.domain.schedule import Schedule, ScheduleId
from anubis.entrypoints.api.legacy import reading


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What an action id names. One of ``command``, ``run`` and ``schedule`` is there."""

    id: str
    client_id: str
    submission: Action | None = None
    """What a client sent to make it; of a run that a schedule fired, to make the schedule. None
    if it came another way: its client is then who submitted it.
    """
    command: Action | None = None
    run: Run | None = None
    schedule: Schedule | None = None

    @property
    def parent(self) -> str | None:
        """The schedule that fired it. A run that a client submitted itself has none."""
        if self.run is None or (self.submission and self.submission.id == self.id):
            return None
        return self.run.family

    @property
    def owner(self) -> str:
        """Whose run or schedule it is."""
        found = self.run or self.schedule
        return found.submitter if found else ""


async def find(service: Service, action_id: str) -> Subject | None:
    """What this id names, if anything."""
    if not reading.is_action_id(action_id):
        return None
    action = await service.actions.get(ActionId(action_id))
    if action is not None and action.kind is ActionKind.COMMAND:
        return Subject(id=action_id, client_id=action.client_id, command=action)
    application = service.application
    try:
        return await _run(service, await application.store.get(RunId(action_id)), action)
    except RunNotFound:
        pass
    try:
        schedule = await application.schedules.get(ScheduleId(action_id))
    except ScheduleNotFound:
        return None
    client_id = action.client_id if action else schedule.submitter
    return Subject(id=action_id, client_id=client_id, submission=action, schedule=schedule)


async def _run(service: Service, run: Run, action: Action | None) -> Subject:
    if action is None and run.family is not None:
        action = await service.actions.get(ActionId(run.family))
    client_id = action.client_id if action else run.submitter
    return Subject(id=run.id, client_id=client_id, submission=action, run=run)
