"""The stories the original wire tells, service by service, status by status, letter by letter.

The expected sequences are those of the original's behaviour (A, C, D and G of its specification).
"""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

import pytest

from anubis.domain.event import Event, EventKind
from anubis.domain.run import Run, RunState
from anubis.domain.schedule import ScheduleId
from anubis.entrypoints.api.legacy import paging, telling, words
from anubis.entrypoints.api.legacy.telling import Command, Line
from anubis.ports.schedule_store import ScheduleEvent
from anubis.testing import builders
from anubis.testing.clock import NOON

RUN = builders.a_run()
ADDRESS = "http://here/metrics"
METRICS = f"Metrics available for job {RUN.id} at {ADDRESS}"
SETTING = telling.Setting(address=ADDRESS)
S = RunState

RECEIVED = ("bai-bff", "SUCCEEDED", "Submission has been successfully received...")
BEFORE = [
    RECEIVED,
    ("fetcher-dispatcher", "SUCCEEDED", "Nothing to fetch"),
    ("executor", "PENDING", "Processing benchmark submission request..."),
    ("executor", "SUCCEEDED", "Benchmark successfully created..."),
    ("watcher", "PENDING", "Watching Kubernetes benchmark"),
    ("watcher", "PENDING", "Benchmark pending node autoscaling"),
    ("watcher", "PENDING", "Benchmark pending pod initialization"),
    ("watcher", "RUNNING", "Benchmark running"),
    ("watcher", "METRICS AVAILABLE", METRICS),
]
CANCELING = [
    ("fetcher-dispatcher", "PENDING", "Canceling downloads..."),
    ("fetcher-dispatcher", "SUCCEEDED", "No downloads to cancel..."),
]
CANCELED = [
    ("executor", "SUCCEEDED", "Execution successfully cancelled..."),
    ("watcher", "CANCELED", "Benchmark cancelled - watch ended"),
    ("watcher", "CANCELED", "No longer watching benchmark"),
]


def events(*states: RunState | EventKind, at: datetime = NOON) -> list[Event]:
    """A history: states reached, or other things that happened, all in one moment."""
    kinds = [kind if isinstance(kind, EventKind) else EventKind.STATE for kind in states]
    return [
        Event(
            run_id=RUN.id,
            number=number,
            sequence=number,
            at=at,
            kind=kind,
            message="a sentence",
            data={"to": state.value} if kind is EventKind.STATE else {},
        )
        for number, (state, kind) in enumerate(zip(states, kinds, strict=True), start=1)
    ]


def ended(state: RunState, reason: str = "it ended") -> Run:
    return dataclasses.replace(RUN, state=state, outcome=builders.an_outcome(state, reason=reason))


def told(run: Run, *states: RunState | EventKind) -> list[tuple[str, str, str]]:
    lines = telling.of_run(run, events(*states), SETTING)
    return [(line.speaker.value, line.status or "", line.text) for line in lines]


UP_TO_RUNNING = (S.SUBMITTED, S.FETCHING, S.QUEUED, S.STARTING, S.RUNNING)


def test_a_successful_run_is_sequence_a() -> None:
    assert told(ended(S.SUCCEEDED), *UP_TO_RUNNING, S.FINISHING, S.SUCCEEDED) == [
        *BEFORE,
        ("watcher", "SUCCEEDED", "Benchmark finished successfully"),
        ("watcher", "METRICS AVAILABLE", METRICS),
        ("watcher", "SUCCEEDED", "No longer watching benchmark"),
    ]


def test_a_failing_run_is_sequence_c() -> None:
    assert told(ended(S.FAILED), *UP_TO_RUNNING, S.FINISHING, S.FAILED) == [
        *BEFORE,
        ("watcher", "FAILED", "Benchmark failed for an unknown reason"),
        ("watcher", "FAILED", "No longer watching benchmark"),
    ]


def test_a_run_that_cannot_be_started_ends_for_those_who_watch_too() -> None:
    run = ended(S.ERROR, 'no "disk"\nis left')

    assert told(run, S.SUBMITTED, S.FETCHING, S.ERROR) == [
        RECEIVED,
        ("executor", "ERROR", 'Error executing benchmark: no "disk"\nis left'),
        ("watcher", "FAILED", "Benchmark failed"),
        ("watcher", "FAILED", "No longer watching benchmark"),
    ]


def test_a_canceled_run_is_sequence_d() -> None:
    history = (*UP_TO_RUNNING, EventKind.CANCEL_REQUESTED, S.FINISHING, S.CANCELED)

    assert told(ended(S.CANCELED), *history) == [*BEFORE, *CANCELING, *CANCELED]


def test_a_run_that_ends_by_itself_while_it_is_canceled_was_not_canceled() -> None:
    history = (*UP_TO_RUNNING, EventKind.CANCEL_REQUESTED, S.FINISHING, S.SUCCEEDED)
    texts = [text for _, _, text in told(ended(S.SUCCEEDED), *history)]

    assert "No downloads to cancel..." in texts
    assert "Benchmark finished successfully" in texts
    assert "Execution successfully cancelled..." not in texts


def test_a_run_of_a_schedule_begins_behind_the_first_two_services() -> None:
    lines = telling.of_run(
        RUN, events(*UP_TO_RUNNING), telling.Setting(address=ADDRESS, is_spawned=True)
    )

    assert lines[0].text == "Processing benchmark submission request..."


def test_notes_and_warnings_pass_in_silence() -> None:
    assert told(RUN, S.SUBMITTED, EventKind.NOTE, EventKind.WARNING) == [RECEIVED]


def test_only_the_end_tells_its_reason_and_beside_the_text() -> None:
    run = ended(S.FAILED, "benchmark exited with code 1")
    history = events(*UP_TO_RUNNING, S.FINISHING, S.FAILED)
    lines = telling.of_run(run, history, SETTING)

    assert [line.text for line in lines if line.outcome] == [
        "Benchmark failed for an unknown reason",
        "No longer watching benchmark",
    ]
    assert [line.outcome for line in lines[-2:]] == [run.outcome] * 2


def a_command(**changes: object) -> Command:
    command = Command(
        id="c", at=NOON, addressed="the-path", target=RUN.id, is_known=True, has_target=True
    )
    return dataclasses.replace(command, **changes)  # type: ignore[arg-type]  # by name


def answers(lines: list[Line]) -> list[tuple[str, object, str]]:
    return [
        (line.speaker.value, line.returned.code if line.returned else line.status, line.text)
        for line in lines
    ]


DISPATCHED = ("bai-bff", "PENDING", "Action received, dispatching delete for <the-path>")
NOT_FOUND = f"Cancel command failed: No resources found for '{RUN.id}'"


def test_a_command_is_answered_by_each_service_once_the_run_has_ended() -> None:
    [end] = events(S.CANCELED, at=NOON + timedelta(seconds=1))

    waiting = telling.of_command(a_command(), None, has_ended=False)
    done = telling.of_command(a_command(), end, has_ended=True)

    assert answers(done) == [
        DISPATCHED,
        ("fetcher-dispatcher", 0, "Cancel command processed successfully"),
        ("sm-executor", 1, NOT_FOUND),
        ("executor", 0, "Cancel command processed successfully"),
    ]
    assert done[:-1] == waiting
    assert done[-1].at == end.at


def test_a_command_about_nothing_is_an_error_of_the_executor() -> None:
    lines = telling.of_command(a_command(has_target=False), None, has_ended=True)

    assert answers(lines)[-1] == ("executor", 1, NOT_FOUND)


def test_a_command_that_came_too_late_is_an_error_of_the_executor() -> None:
    [end] = events(S.SUCCEEDED)

    lines = telling.of_command(a_command(), end, has_ended=True)

    assert answers(lines)[-1] == ("executor", 1, NOT_FOUND)


def test_a_command_that_nobody_knows_is_dispatched_and_met_with_silence() -> None:
    lines = telling.of_command(a_command(is_known=False), None, has_ended=True)

    assert answers(lines) == [DISPATCHED]


SCHEDULE = ScheduleId(builders.a_run_id(7))
FIRED = builders.a_run_id(8)


def schedule_events(*runs: str | None) -> list[ScheduleEvent]:
    return [
        ScheduleEvent(
            schedule_id=SCHEDULE,
            number=number,
            at=NOON + timedelta(minutes=number),
            kind=EventKind.NOTE,
            message="a sentence",
            run_id=run,
        )
        for number, run in enumerate((None, *runs), start=1)
    ]


def test_a_schedule_is_sequence_g() -> None:
    history = schedule_events(None, FIRED, FIRED)
    cancel = a_command(id="c1", has_target=True, after=4)
    missed = a_command(id="c2", has_target=False, after=0)

    lines = telling.of_schedule(SCHEDULE, history, [cancel, missed])

    assert [(line.speaker.value, line.status, line.text) for line in lines] == [
        RECEIVED,
        ("fetcher-dispatcher", "SUCCEEDED", "Nothing to fetch"),
        ("executor", "PENDING", "Processing scheduled benchmark submission request..."),
        (
            "executor",
            "SUCCEEDED",
            f"Scheduled benchmark successfully submitted with job id b-{SCHEDULE}",
        ),
        ("anubis-cron-job", "SUCCEEDED", f"Spawning benchmark with action_id: [{FIRED}]"),
        *CANCELING,
        ("executor", "SUCCEEDED", "Execution successfully cancelled..."),
    ]


def test_what_was_told_once_is_told_again_with_the_same_keys() -> None:
    history = events(*UP_TO_RUNNING, EventKind.CANCEL_REQUESTED, S.FINISHING, S.CANCELED)
    stories = [telling.of_run(RUN, history[:count], SETTING) for count in range(len(history) + 1)]
    keys = [[one.key for one in paging.placed(RUN.id, story)] for story in stories]

    assert all(keys[-1][: len(some)] == some for some in keys)
    assert keys[-1] == sorted(set(keys[-1]))


def test_a_clock_that_was_set_back_does_not_turn_the_story_around() -> None:
    first, second = events(S.SUBMITTED, S.QUEUED)
    second = dataclasses.replace(second, at=NOON - timedelta(hours=1))
    lines = telling.of_run(RUN, [first, second], SETTING)
    keys = [one.key for one in paging.placed(RUN.id, lines)]

    assert keys == sorted(keys)
    assert len(keys) == 6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('say "no"', "say 'no'"),
        ("C:\\temp", "C:/temp"),
        ("one\ntwo\tthree\x1b[0m", "one two three [0m"),
        ("größe µ 'x' * $(y)", "größe µ 'x' * $(y)"),
        (" \n", ""),
    ],
)
def test_no_text_holds_what_the_client_stumbles_over(text: str, expected: str) -> None:
    assert words.plain(text) == expected
