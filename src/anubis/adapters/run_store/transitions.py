"""What a change does to a run and which events it leaves. Pure, so that all stores agree.

A store adds what a technology must: reading the run and writing the result in one transaction.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime

from anubis.domain import errors
from anubis.domain.document import Document
from anubis.domain.event import EventKind, NewEvent, Scalar
from anubis.domain.run import MOVES, Lease, Run, RunId, RunState, WorkerId
from anubis.ports.run_store import Move, Step


def check_new(run: Run, document: Document) -> None:
    """Refuse a run that does not start at the start, or not with this document."""
    if run.state is not RunState.SUBMITTED:
        raise errors.IllegalMove(f"a run starts in SUBMITTED, not in {run.state}")
    if run.descriptor_sha != document.sha:
        raise errors.NotPossible(
            f"run {run.id} names a descriptor that is not the document given with it"
        )


def check_same(stored: Run, run: Run) -> None:
    """Accept a run that is added again only if it is the same one."""
    if stored.descriptor_sha != run.descriptor_sha:
        raise errors.NotPossible(f"run {run.id} exists already, with another descriptor")


def check_same_key(stored: Run, run: Run, key: str) -> None:
    """Accept a key that its submitter uses again only for the same descriptor."""
    if stored.descriptor_sha != run.descriptor_sha:
        raise errors.NotPossible(
            f"the key {key!r} was used for run {stored.id}, which has another descriptor"
        )


def first_event(run: Run, message: str) -> NewEvent:
    """The event that opens every run's history."""
    data: Mapping[str, Scalar] = {"from": None, "to": run.state.value}
    return NewEvent(at=run.submitted_at, kind=EventKind.STATE, message=message, data=data)


def leased(run: Run, worker: WorkerId, ends: datetime) -> Run:
    """The run in the hands of ``worker``; also how a lease is extended."""
    return dataclasses.replace(run, version=run.version + 1, lease=Lease(worker=worker, ends=ends))


def released(run: Run) -> Run:
    """The run in nobody's hands."""
    return dataclasses.replace(run, version=run.version + 1, lease=None)


def check_holder(run: Run | None, worker: WorkerId, run_id: RunId) -> Run:
    """Give the run back if ``worker`` holds it; a run that is gone is held by nobody."""
    if run is not None and run.lease is not None and run.lease.worker == worker:
        return run
    holder = "nobody" if run is None or run.lease is None else f"{run.lease.worker}"
    raise errors.LeaseLost(f"run {run_id} is held by {holder}, not by {worker}")


def stepped(run: Run, step: Step) -> tuple[Run, Sequence[NewEvent]]:
    """The run after ``step``, and the events that say so. Raises IllegalMove."""
    events = list(step.notes)
    after = run
    for move in step.moves:
        events.append(_state_event(after.state, move))
        after = _moved(after, move)
    free = step.release or after.state.is_terminal
    after = dataclasses.replace(
        after,
        version=run.version + 1,
        outcome=step.outcome or run.outcome,
        lease=None if free else run.lease,
    )
    return after, events


def _moved(run: Run, move: Move) -> Run:
    if move.to not in MOVES[run.state]:
        raise errors.IllegalMove(f"run {run.id} cannot move from {run.state} to {move.to}")
    return dataclasses.replace(
        run,
        state=move.to,
        state_since=move.at,
        deadline=move.deadline,
        started_at=move.at if move.to is RunState.RUNNING else run.started_at,
        ended_at=_end_of(run, move),
    )


def _end_of(run: Run, move: Move) -> datetime | None:
    """When the program ended, once the run has: since when it was FINISHING, if it was."""
    if not move.to.is_terminal:
        return None
    return run.state_since if run.state is RunState.FINISHING else move.at


def _state_event(start: RunState, move: Move) -> NewEvent:
    data: Mapping[str, Scalar] = {"from": start.value, "to": move.to.value}
    return NewEvent(at=move.at, kind=EventKind.STATE, message=move.message, data=data)


def cancel_requested(run: Run, now: datetime, by: str) -> tuple[Run, Sequence[NewEvent]]:
    """The run once somebody wants it to stop; no event if somebody already did."""
    if run.state.is_terminal:
        raise errors.NotPossible(f"run {run.id} has already ended: {run.state}")
    if run.cancel_requested_at is not None:
        return run, ()
    event = NewEvent(
        at=now,
        kind=EventKind.CANCEL_REQUESTED,
        message=f"{by} asked for it to stop",
        data={"by": by},
    )
    return dataclasses.replace(run, version=run.version + 1, cancel_requested_at=now), (event,)


def check_ended(run: Run) -> None:
    """Refuse to forget a run that somebody may still be working on."""
    if not run.state.is_terminal:
        raise errors.NotPossible(
            f"run {run.id} is {run.state}: cancel it and wait for its end before it is purged"
        )


def not_found(run_id: RunId) -> errors.RunNotFound:
    """The error every store raises for an id it does not know."""
    return errors.RunNotFound(f"there is no run {run_id}")


def plan_forgotten(run: Run) -> errors.NotPossible:
    """The error every store raises when the plan of an ended run is asked for."""
    return errors.NotPossible(f"run {run.id} has ended: its plan is no longer kept")
