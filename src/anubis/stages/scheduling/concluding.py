"""Put into the schedule, and into words, what came of a decision."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime

from anubis.domain.event import EventKind, NewEvent
from anubis.domain.run import RunId
from anubis.domain.schedule import CatchUp, Overlap, Schedule
from anubis.stages.scheduling.deciding import GRACE, Decision


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of the firings that were decided on."""

    runs: Mapping[datetime, RunId]
    refused: Mapping[datetime, str] = dataclasses.field(default_factory=dict)  #: and why
    canceled: Sequence[RunId] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Conclusion:
    """A schedule as it is to be stored, and the events to store with it."""

    schedule: Schedule
    events: tuple[NewEvent, ...]


def conclude(schedule: Schedule, decision: Decision, outcome: Outcome, now: datetime) -> Conclusion:
    """The schedule after its firings."""
    events = (
        *_missed(schedule, decision, now),
        *_overlapping(schedule, decision, now),
        *_fired(outcome, now),
        *_refused(outcome, now),
        *_canceled(outcome, now),
    )
    moments = (*decision.missed, *decision.overlapping, *decision.firings)
    changed = dataclasses.replace(
        schedule,
        next_at=None if schedule.is_paused else decision.next_at,
        last_at=max(moments, default=schedule.last_at),
        last_run=outcome.runs[max(outcome.runs)] if outcome.runs else schedule.last_run,
        last_note=_note(events) or schedule.last_note,
        fired=schedule.fired + len(outcome.runs),
    )
    return Conclusion(schedule=changed, events=(*events, *_last_words(changed, now)))


def gave_up(schedule: Schedule, reason: str, now: datetime, next_at: datetime | None) -> Conclusion:
    """The schedule after firings that we could not even decide on."""
    event = _event(now, EventKind.WARNING, f"a firing was left out: {reason}")
    changed = dataclasses.replace(
        schedule, next_at=next_at, last_at=schedule.next_at, last_note=event.message
    )
    return Conclusion(schedule=changed, events=(event, *_last_words(changed, now)))


def mended(schedule: Schedule, next_at: datetime, now: datetime) -> Conclusion:
    """The schedule after the clock was set back."""
    assert schedule.next_at is not None, "a schedule without a next firing needs no mending"
    text = (
        f"the clock was set back; the next firing is due at {shown(next_at)} "
        f"and not at {shown(schedule.next_at)}"
    )
    changed = dataclasses.replace(schedule, next_at=next_at, last_note=text)
    return Conclusion(schedule=changed, events=(_event(now, EventKind.WARNING, text),))


def shown(moment: datetime) -> str:
    """A moment of cron, to the minute, in UTC."""
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def _missed(schedule: Schedule, decision: Decision, now: datetime) -> Sequence[NewEvent]:
    if not decision.missed:
        return ()
    count = f"{len(decision.missed):,}{'' if decision.is_complete else ' and more'}"
    last = shown(decision.missed[-1])
    if len(decision.missed) == 1 and decision.is_complete:
        text = f"the firing due at {last} was missed and left out"
    else:
        text = f"{count} firings until {last} were missed and left out"
    if schedule.catch_up is CatchUp.LAST and decision.firings:
        text += "; one run makes up for them"
    return (_event(now, EventKind.WARNING, text),)


def _overlapping(schedule: Schedule, decision: Decision, now: datetime) -> Sequence[NewEvent]:
    reason = {
        Overlap.SKIP: "another run of this schedule has not ended",
        Overlap.CANCEL_PREVIOUS: "a later one would have canceled its run",
        Overlap.QUEUE: "",
    }[schedule.overlap]
    return [
        _event(now, EventKind.NOTE, f"the firing due at {shown(one)} was left out: {reason}")
        for one in decision.overlapping
    ]


def _fired(outcome: Outcome, now: datetime) -> Sequence[NewEvent]:
    return [
        _event(now, EventKind.NOTE, f"fired run {run}, due at {shown(at)}{_late(at, now)}", run)
        for at, run in sorted(outcome.runs.items())
    ]


def _late(moment: datetime, now: datetime) -> str:
    return " and made up for" if now - moment > GRACE else ""


def _refused(outcome: Outcome, now: datetime) -> Sequence[NewEvent]:
    return [
        _event(now, EventKind.WARNING, f"the firing due at {shown(at)} became no run: {reason}")
        for at, reason in sorted(outcome.refused.items())
    ]


def _canceled(outcome: Outcome, now: datetime) -> Sequence[NewEvent]:
    return [
        _event(now, EventKind.NOTE, f"asked run {run} to stop, for the one after it", run)
        for run in outcome.canceled
    ]


def _note(events: Sequence[NewEvent]) -> str:
    """The one event that tells most: what went wrong, else what came last."""
    telling = [event for event in events if event.kind is EventKind.WARNING] or events
    return telling[-1].message if telling else ""


def _last_words(schedule: Schedule, now: datetime) -> Sequence[NewEvent]:
    if schedule.next_at is not None or schedule.is_paused:
        return ()
    return (_event(now, EventKind.WARNING, "the calendar has no further firing of this schedule"),)


def _event(at: datetime, kind: EventKind, message: str, run: RunId | None = None) -> NewEvent:
    return NewEvent(at=at, kind=kind, message=message, data={} if run is None else {"run": run})
