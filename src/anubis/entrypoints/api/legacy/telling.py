"""Tell what happened to a run, a schedule or a command as the original services would have.

Pure. Each source is an ordered story that only grows (events have numbers), and it is told from its
beginning every time; so what was told once is told again letter by letter, with the same marks, and
a client that polls meets nothing twice and misses nothing. What the original's watcher repeated
every ten seconds is told once per change.

A run that waits for room is one that waits for a node: that is what QUEUED becomes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final

from anubis.domain.event import Event, EventKind
from anubis.domain.run import Outcome, Run, RunState
from anubis.entrypoints.api.legacy import words
from anubis.entrypoints.api.legacy.downloads import NOTHING_TO_CANCEL, Downloads, Saying
from anubis.entrypoints.api.legacy.words import Speaker, Status
from anubis.ports.schedule_store import ScheduleEvent


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Returned:
    """What a service answered to a command."""

    code: int  #: 0: done, 1: it could not be
    value: object = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One message of one service about an action."""

    mark: str  #: unique within the action, and the same whenever it is told
    at: datetime
    speaker: Speaker
    status: Status | None = None  #: None: the answer to a command
    text: str
    outcome: Outcome | None = None  #: of a run that has ended: more than the original told
    returned: Returned | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A request to cancel, and what became of it."""

    id: str
    at: datetime
    addressed: str  #: the action id in the path
    target: str  #: the action id in the message
    is_known: bool  #: whether anybody knows such a command at all
    has_target: bool  #: whether there was something to cancel
    after: int = 0  #: of a schedule: how many of its events had happened by then


_CREATED: Final = (
    (Speaker.EXECUTOR, Status.PENDING, words.PROCESSING),
    (Speaker.EXECUTOR, Status.SUCCEEDED, words.CREATED),
    (Speaker.WATCHER, Status.PENDING, words.WATCHING),
    (Speaker.WATCHER, Status.PENDING, words.PENDING_NODE),
)

_NOT_RUN: Final = (
    (Speaker.WATCHER, Status.FAILED, words.NOT_RUN),
    (Speaker.WATCHER, Status.FAILED, words.WATCH_ENDED),
)
"""The end of what never ran. The original left its client waiting for it."""

_METRICS: Final = (Speaker.WATCHER, Status.METRICS_AVAILABLE, words.METRICS)

_REACHED: Final[Mapping[str, tuple[Saying, ...]]] = MappingProxyType(
    {
        RunState.SUBMITTED: ((Speaker.BFF, Status.SUCCEEDED, words.RECEIVED),),
        RunState.STARTING: ((Speaker.WATCHER, Status.PENDING, words.PENDING_POD),),
        RunState.RUNNING: ((Speaker.WATCHER, Status.RUNNING, words.RUNNING), _METRICS),
        RunState.SUCCEEDED: (
            (Speaker.WATCHER, Status.SUCCEEDED, words.FINISHED),
            _METRICS,
            (Speaker.WATCHER, Status.SUCCEEDED, words.WATCH_ENDED),
        ),
        RunState.FAILED: (
            (Speaker.WATCHER, Status.FAILED, words.FAILED),
            (Speaker.WATCHER, Status.FAILED, words.WATCH_ENDED),
        ),
        RunState.CANCELED: (
            (Speaker.EXECUTOR, Status.SUCCEEDED, words.CANCELED),
            (Speaker.WATCHER, Status.CANCELED, words.WATCH_CANCELED),
            (Speaker.WATCHER, Status.CANCELED, words.WATCH_ENDED),
        ),
        RunState.ERROR: ((Speaker.EXECUTOR, Status.ERROR, words.ERROR), *_NOT_RUN),
    }
)
"""What is said when a run reaches a state, besides what ``Downloads`` says of its data."""

_SCHEDULING: Final = (
    (Speaker.BFF, Status.SUCCEEDED, words.RECEIVED),
    (Speaker.FETCHER, Status.SUCCEEDED, words.NOTHING_TO_FETCH),
    (Speaker.EXECUTOR, Status.PENDING, words.PROCESSING_SCHEDULED),
    (Speaker.EXECUTOR, Status.SUCCEEDED, words.SCHEDULED),
)

_SKIPPED_WHEN_SPAWNED: Final = frozenset({words.RECEIVED, words.NOTHING_TO_FETCH})
"""A schedule's runs were born behind the first two services."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What a run's own events do not tell."""

    address: str  #: where its metrics are
    is_spawned: bool = False  #: whether it is a schedule's
    has_data: bool = False  #: whether its descriptor names anything to fetch


def of_run(run: Run, events: Sequence[Event], setting: Setting) -> list[Line]:
    """The story of a run."""
    reason = run.outcome.reason if run.outcome else ""
    downloads = Downloads(has_data=setting.has_data)
    lines = list[Line]()
    for event in events:
        ends = event.kind is EventKind.STATE and RunState(str(event.data["to"])).is_terminal
        for index, (speaker, status, text) in enumerate(_sayings(event, downloads, reason)):
            if setting.is_spawned and text in _SKIPPED_WHEN_SPAWNED:
                continue
            line = Line(
                mark=f"{event.number}.{index}",
                at=event.at,
                speaker=speaker,
                status=status,
                text=text.format(action_id=run.id, address=setting.address, reason=reason),
                outcome=run.outcome if ends else None,
            )
            lines.append(line)
    return lines


def of_schedule(
    schedule_id: str, events: Sequence[ScheduleEvent], commands: Sequence[Command]
) -> list[Line]:
    """The story of a schedule: how it was taken, each run that it fired, and its cancelling."""
    told = set[str]()
    lines = list[Line]()
    for event in events:
        sayings = _SCHEDULING if event.number == 1 else _firing(event, told)
        lines += _said(f"{event.number}", event.at, sayings, schedule_id)
        for command in commands:
            if command.has_target and command.after == event.number:
                lines += _said(f"canceled.{command.id}", command.at, _CANCELED_SCHEDULE, "")
    return lines


def of_command(command: Command, ended: Event | None, *, has_ended: bool) -> list[Line]:
    """The story of a command. ``ended`` is the event that ended the run it is about, if it is one
    that has; ``has_ended`` also holds for what has no such event, a schedule or nothing at all.
    """
    text = words.DISPATCHING.format(action_id=command.addressed)
    dispatched = Line(
        mark="0", at=command.at, speaker=Speaker.BFF, status=Status.PENDING, text=text
    )
    if not command.is_known:  # then all the services were silent
        return [dispatched]
    found_nothing = words.COMMAND_FOUND_NOTHING.format(action_id=command.target)
    lines = [
        dispatched,
        _answer(
            "1",
            command.at,
            Speaker.FETCHER,
            words.COMMAND_DONE,
            Returned(code=0, value={"k8s_deletion_results": [], "num_zookeeper_nodes_updated": 0}),
        ),
        _answer("2", command.at, Speaker.SAGEMAKER, found_nothing, Returned(code=1)),
    ]
    if not command.has_target:
        lines.append(_answer("3", command.at, Speaker.EXECUTOR, found_nothing, Returned(code=1)))
    elif has_ended:
        lines.append(_executed(command, ended, found_nothing))
    return lines


def _executed(command: Command, ended: Event | None, found_nothing: str) -> Line:
    """A run may have ended by itself before the request reached it."""
    at = ended.at if ended else command.at
    if ended is not None and ended.data["to"] != RunState.CANCELED:
        return _answer("3", at, Speaker.EXECUTOR, found_nothing, Returned(code=1))
    value = [f"'{command.target}' canceled"]
    return _answer("3", at, Speaker.EXECUTOR, words.COMMAND_DONE, Returned(code=0, value=value))


def _answer(mark: str, at: datetime, speaker: Speaker, text: str, returned: Returned) -> Line:
    return Line(mark=mark, at=at, speaker=speaker, text=text, returned=returned)


def _sayings(event: Event, downloads: Downloads, reason: str) -> Sequence[Saying]:
    if event.kind is EventKind.CANCEL_REQUESTED:
        return downloads.of_cancel()
    if event.kind is EventKind.STATE:
        return _reaching(RunState(str(event.data["to"])), downloads, reason)
    return downloads.of_note(event)


def _reaching(state: RunState, downloads: Downloads, reason: str) -> Sequence[Saying]:
    if not state.is_terminal:
        was_concluded = downloads.is_concluded
        fetched = downloads.of_state(state)
        created = _CREATED if downloads.is_concluded and not was_concluded else ()
        return [*fetched, *created, *_REACHED.get(state, ())]
    if state is RunState.CANCELED:
        return [*downloads.of_canceled(), *_REACHED[state]]
    if state is not RunState.SUCCEEDED and downloads.have_failed:
        return [*downloads.of_failure(reason), *_NOT_RUN]
    return _REACHED[state]


def _firing(event: ScheduleEvent, told: set[str]) -> tuple[Saying, ...]:
    """A run is fired when a schedule's story first names it; later it may name it again."""
    if event.run_id is None or event.run_id in told:
        return ()
    told.add(event.run_id)
    text = words.SPAWNING.format(action_id=event.run_id)
    return ((Speaker.CRON, Status.SUCCEEDED, text),)


_CANCELED_SCHEDULE: Final = (
    *NOTHING_TO_CANCEL,
    (Speaker.EXECUTOR, Status.SUCCEEDED, words.CANCELED),
)


def _said(mark: str, at: datetime, sayings: Sequence[Saying], action_id: str) -> Iterator[Line]:
    for index, (speaker, status, text) in enumerate(sayings):
        yield Line(
            mark=f"{mark}.{index}",
            at=at,
            speaker=speaker,
            status=status,
            text=text.format(action_id=action_id),
        )
