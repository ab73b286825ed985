"""Build domain values in one line. A test names what it cares about; the rest is sensible.

Ids and instants are made from counters, never from the real clock or chance, so that a failure
looks the same twice. Fields that a builder does not take are set with ``dataclasses.replace``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from anubis.domain import identity
from anubis.domain.access import AuditEntry, Role, Token, TokenId
from anubis.domain.action import Action, ActionId, ActionKind
from anubis.domain.document import Document, Fingerprint
from anubis.domain.event import EventKind, NewEvent, Scalar
from anubis.domain.metric import MetricKey, MetricSource, Summary
from anubis.domain.run import Cause, Outcome, Run, RunId, RunState
from anubis.domain.schedule import Schedule, ScheduleId
from anubis.ports.run_store import Move, Step
from anubis.testing.clock import NOON

HOUR = timedelta(hours=1)
PLAN = '{"units": []}'
"""Stands for a plan; a store never looks inside."""

PATH_TO_SUCCESS = (
    RunState.FETCHING,
    RunState.QUEUED,
    RunState.STARTING,
    RunState.RUNNING,
    RunState.FINISHING,
    RunState.SUCCEEDED,
)
"""The states a run passes after SUBMITTED when all goes well."""


def a_run_id(number: int = 0, *, at: datetime = NOON) -> RunId:
    """The id of the ``number``-th run submitted after ``at``, a millisecond apart."""
    randomness = hashlib.sha256(f"{number}".encode()).digest()
    return identity.run_id(at + timedelta(milliseconds=number), randomness)


def a_document(
    content: bytes = b'spec_version = "0.1.0"\n',
    *,
    name: str = "descriptor.toml",
    directory: str = "/somewhere",
    script: str = "",
) -> Document:
    """A descriptor as a user gave it. The stores do not parse it."""
    return Document(name=name, directory=directory, content=content, script=script)


def a_run(
    number: int = 0,
    *,
    document: Document | None = None,
    benchmark: str = "resnet",
    labels: Mapping[str, str] | None = None,
    family: str | None = None,
    submitter: str = "user",
    priority: int = 0,
    at: datetime = NOON,
) -> Run:
    """A run that was just submitted; ``number`` decides its id, and so its place in lists."""
    return Run(
        id=a_run_id(number, at=at),
        state=RunState.SUBMITTED,
        version=1,
        benchmark=benchmark,
        engine="process",
        descriptor_sha=(document or a_document()).sha,
        submitter=submitter,
        labels=tuple(sorted((labels or {}).items())),
        family=family,
        priority=priority,
        submitted_at=at,
        state_since=at,
        deadline=at + HOUR,
    )


def a_move(
    to: RunState = RunState.FETCHING,
    *,
    at: datetime = NOON,
    allowed: timedelta = HOUR,
    message: str = "",
) -> Move:
    """A move to ``to``, which may then last for ``allowed``."""
    return Move(to=to, at=at, deadline=at + allowed, message=message or f"now {to.value}")


def moves(*states: RunState, at: datetime = NOON) -> tuple[Move, ...]:
    """One move after the other, a second apart."""
    return tuple(
        a_move(state, at=at + timedelta(seconds=second)) for second, state in enumerate(states)
    )


def a_step(run_id: RunId, *states: RunState, at: datetime = NOON) -> Step:
    """A step that moves a run through ``states``, with the outcome if the last one is an end."""
    outcome = an_outcome(states[-1]) if states and states[-1].is_terminal else None
    return Step(run_id=run_id, moves=moves(*states, at=at), outcome=outcome)


def an_outcome(state: RunState = RunState.SUCCEEDED, *, reason: str = "") -> Outcome:
    """How a run ended."""
    failed = state is RunState.FAILED
    return Outcome(
        state=state,
        reason=reason or f"it ended as {state.value}",
        cause=Cause.EXITED,
        unit="benchmark",
        exit_code=1 if failed else 0,
        last_lines=("Traceback", "ValueError: no") if failed else (),
    )


def a_note(
    message: str = "of interest",
    *,
    kind: EventKind = EventKind.NOTE,
    at: datetime = NOON,
    data: Mapping[str, Scalar] | None = None,
) -> NewEvent:
    """An event without a number."""
    return NewEvent(at=at, kind=kind, message=message, data=data or {})


def a_fingerprint(*, machine: str = '{"cores": 2}', moment: str = '{"load": 0.5}') -> Fingerprint:
    """The environment of a run."""
    return Fingerprint(machine=machine, moment=moment)


def a_summary(
    name: str = "loss",
    *,
    unit: str = "benchmark",
    source: MetricSource = MetricSource.PATTERN,
    values: Sequence[float] = (4.0, 3.0, 2.0, 1.0),
) -> Summary:
    """Roughly the statistics of ``values``: the percentiles are all the maximum."""
    mean = sum(values) / len(values)
    ordered = sorted(values)
    return Summary(
        key=MetricKey(unit=unit, name=name, source=source),
        units="",
        count=len(values),
        mean=mean,
        median=ordered[len(ordered) // 2],
        minimum=ordered[0],
        maximum=ordered[-1],
        std=(sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)) ** 0.5,
        p90=ordered[-1],
        p95=ordered[-1],
        p99=ordered[-1],
        first=values[0],
        last=values[-1],
    )


def a_schedule(
    number: int = 0,
    *,
    document: Document | None = None,
    benchmark: str = "resnet",
    submitter: str = "user",
    next_at: datetime | None = None,
    at: datetime = NOON,
) -> Schedule:
    """A schedule of every hour that was just made; ``number`` decides its id."""
    return Schedule(
        id=ScheduleId(a_run_id(number, at=at)),
        version=1,
        benchmark=benchmark,
        cron="0 * * * *",
        engine="process",
        descriptor_sha=(document or a_document()).sha,
        submitter=submitter,
        created_at=at,
        next_at=next_at,
    )


def a_token(
    number: int = 0, *, user: str = "user", role: Role = Role.SUBMITTER, at: datetime = NOON
) -> Token:
    """A token made ``number`` seconds after ``at``, good for ever."""
    made = at + timedelta(seconds=number)
    return Token(id=TokenId(f"token{number}"), user=user, role=role, created_at=made)


def a_digest(number: int = 0) -> str:
    """The digest of the secret of the token with this number."""
    return hashlib.sha256(f"secret {number}".encode()).hexdigest()


def an_audit_entry(action: str = "run.submit", *, user: str = "user") -> AuditEntry:
    """Something that somebody did."""
    return AuditEntry(at=NOON, user=user, action=action, target=a_run_id())


def a_submission(
    number: int = 0, *, client_id: str = "client", at: datetime = NOON, envelope: str = "{}"
) -> Action:
    """A submission over the original wire; its id is that of the run with this number."""
    return Action(
        id=ActionId(a_run_id(number)),
        kind=ActionKind.SUBMISSION,
        client_id=client_id,
        at=at,
        envelope=envelope,
    )


def a_command(number: int = 0, *, target: str, at: datetime = NOON) -> Action:
    """A command over the original wire about a run or schedule."""
    return Action(
        id=ActionId(f"command-{number}"),
        kind=ActionKind.COMMAND,
        client_id="client",
        at=at,
        target=target,
        envelope="{}",
    )
