"""What a schedule store refuses, and whom people mean. Pure, so that all stores agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from anubis.domain import errors, identity
from anubis.domain.document import Document
from anubis.domain.event import EventKind, NewEvent
from anubis.domain.schedule import Schedule, ScheduleId
from anubis.ports.schedule_store import ScheduleEvent

NAMED = 3
"""How many candidates an ambiguous reference is answered with: enough to see what to type next."""


def check_new(schedule: Schedule, document: Document) -> None:
    """Refuse a schedule that does not come with its own document."""
    if schedule.descriptor_sha != document.sha:
        raise errors.NotPossible(
            f"schedule {schedule.id} names a descriptor that is not the document given with it"
        )


def check_same(stored: Schedule, schedule: Schedule) -> None:
    """Accept a schedule that is stored again only with the descriptor it has."""
    if stored.descriptor_sha != schedule.descriptor_sha:
        raise errors.NotPossible(f"schedule {schedule.id} exists already, with another descriptor")


def check_same_key(stored: Schedule, schedule: Schedule, key: str) -> None:
    """Accept a key that its submitter uses again only for the same descriptor."""
    if stored.descriptor_sha != schedule.descriptor_sha:
        raise errors.NotPossible(
            f"the key {key!r} was used for schedule {stored.id}, which has another descriptor"
        )


def first_event(schedule: Schedule, message: str) -> NewEvent:
    """The event that opens every schedule's history."""
    return NewEvent(at=schedule.created_at, kind=EventKind.NOTE, message=message)


def numbered(
    schedule_id: ScheduleId, last: int, events: Sequence[NewEvent]
) -> Sequence[ScheduleEvent]:
    """New events with the numbers after ``last``."""
    return [
        ScheduleEvent(
            schedule_id=schedule_id,
            number=number,
            at=event.at,
            kind=event.kind,
            message=event.message,
            run_id=_run_of(event),
        )
        for number, event in enumerate(events, start=last + 1)
    ]


def _run_of(event: NewEvent) -> str | None:
    run_id = event.data.get("run")
    return None if run_id is None else str(run_id)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """Whom a person may mean: ids from ``start`` to before ``end``, or a benchmark's schedules."""

    text: str
    start: str
    end: str


def reference(text: str) -> Reference:
    """What to look for. A text that no id can start with is an empty range."""
    prefix = identity.prefix(text)
    if prefix is None:
        return Reference(text=text, start="", end="")
    return Reference(text=text, start=prefix, end=prefix + identity.ABOVE_ALL_IDS)


def only(asked: Reference, candidates: Sequence[Schedule]) -> ScheduleId:
    """The one candidate. At most ``NAMED + 1`` are needed."""
    if not candidates:
        raise errors.ScheduleNotFound(
            f"no schedule has an id that starts with {asked.text!r}, or a benchmark of that name"
        )
    if len(candidates) > 1:
        more = ", …" if len(candidates) > NAMED else ""
        named = ", ".join(f"{each.id} ({each.benchmark})" for each in candidates[:NAMED])
        raise errors.ScheduleAmbiguous(
            f"several schedules fit {asked.text!r}: {named}{more}; give more of the id"
        )
    return candidates[0].id


def not_found(schedule_id: ScheduleId) -> errors.ScheduleNotFound:
    """The error every store raises for an id it does not know."""
    return errors.ScheduleNotFound(f"there is no schedule {schedule_id}")
