"""The stories of runs with data: sequence B of the original, and the downloads in C and D."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from anubis.domain.event import Event, EventKind
from anubis.domain.run import Run, RunState
from anubis.entrypoints.api.legacy import paging, telling
from anubis.testing import builders
from anubis.testing.clock import NOON

if TYPE_CHECKING:
    from tests.unit.legacy.conftest import Wire
else:
    Wire = Any

RUN = builders.a_run()
S = RunState
SETTING = telling.Setting(address="http://here/metrics", has_data=True)
DATA, MODEL = "https://data.example/{set}.tgz", "s3://models/resnet"

Happening = RunState | EventKind | tuple[str, str]

RECEIVED = ("bai-bff", "SUCCEEDED", "Submission has been successfully received...")
INITIATING = ("fetcher-dispatcher", "PENDING", "Initiating downloads...")
PREPARING = [
    ("fetcher-dispatcher", "PENDING", f"Preparing {item} for download...") for item in (DATA, MODEL)
]
DOWNLOADED = [("fetcher-dispatcher", "PENDING", f"{item} downloaded...") for item in (DATA, MODEL)]
PROCESSED = ("fetcher-dispatcher", "SUCCEEDED", "All downloads processed")
CREATED = [
    ("executor", "PENDING", "Processing benchmark submission request..."),
    ("executor", "SUCCEEDED", "Benchmark successfully created..."),
    ("watcher", "PENDING", "Watching Kubernetes benchmark"),
    ("watcher", "PENDING", "Benchmark pending node autoscaling"),
]
PENDING_POD = ("watcher", "PENDING", "Benchmark pending pod initialization")
NOT_RUN = [
    ("watcher", "FAILED", "Benchmark failed"),
    ("watcher", "FAILED", "No longer watching benchmark"),
]
CANCELED = [
    ("executor", "SUCCEEDED", "Execution successfully cancelled..."),
    ("watcher", "CANCELED", "Benchmark cancelled - watch ended"),
    ("watcher", "CANCELED", "No longer watching benchmark"),
]
BEGUN = ((DATA, "begun"), (MODEL, "begun"))
FETCHED = (*BEGUN, (DATA, "progress"), (DATA, "done"), (MODEL, "done"))


def events(*happened: Happening) -> list[Event]:
    """A history: states reached, what became of items, or other kinds of events."""
    return [_event(number, one) for number, one in enumerate(happened, start=1)]


def _event(number: int, happened: Happening) -> Event:
    kind, message, data = EventKind.NOTE, "a sentence", {}
    if isinstance(happened, EventKind):
        kind = happened
    elif isinstance(happened, RunState):
        kind, data = EventKind.STATE, {"to": happened.value}
    else:
        item, phase = happened
        message, data = f"about {item}", {"fetch": item, "phase": phase}
    return Event(
        run_id=RUN.id,
        number=number,
        sequence=number,
        at=NOON,
        kind=kind,
        message=message,
        data=data,
    )


def told(*happened: Happening, run: Run = RUN) -> list[tuple[str, str, str]]:
    lines = telling.of_run(run, events(*happened), SETTING)
    return [(line.speaker.value, line.status or "", line.text) for line in lines]


def ended(state: RunState, reason: str = "it ended") -> Run:
    return dataclasses.replace(RUN, state=state, outcome=builders.an_outcome(state, reason=reason))


def test_a_run_with_data_is_sequence_b() -> None:
    assert told(S.SUBMITTED, S.FETCHING, *FETCHED, S.QUEUED, S.STARTING) == [
        RECEIVED,
        INITIATING,
        *PREPARING,
        *DOWNLOADED,
        PROCESSED,
        *CREATED,
        PENDING_POD,
    ]


def test_a_run_that_waits_before_its_data_is_fetched_has_not_been_created_yet() -> None:
    waiting = (S.SUBMITTED, S.QUEUED)
    assert told(*waiting) == [RECEIVED, INITIATING]
    assert told(*waiting, S.FETCHING, *FETCHED, S.QUEUED, S.STARTING) == [
        RECEIVED,
        INITIATING,
        *PREPARING,
        *DOWNLOADED,
        PROCESSED,
        *CREATED,
        PENDING_POD,
    ]


def test_data_that_was_here_already_needs_no_word_of_its_items() -> None:
    expected = [RECEIVED, INITIATING, PROCESSED, *CREATED, PENDING_POD]
    assert told(S.SUBMITTED, S.QUEUED, S.STARTING) == expected
    assert told(S.SUBMITTED, S.FETCHING, S.QUEUED, S.STARTING) == expected


@pytest.mark.parametrize("end", [S.FAILED, S.ERROR])
def test_a_failed_download_aborts_and_ends_for_those_who_watch_too(end: RunState) -> None:
    history = (S.SUBMITTED, S.FETCHING, *BEGUN, (MODEL, "done"), (DATA, "failed"), end)

    assert told(*history, run=ended(end, "found 404 {}")) == [
        RECEIVED,
        INITIATING,
        *PREPARING,
        DOWNLOADED[1],
        ("fetcher-dispatcher", "FAILED", f"{DATA} download failed: 'found 404 {{}}'..."),
        ("fetcher-dispatcher", "FAILED", "Aborting execution"),
        *NOT_RUN,
    ]


def test_those_that_were_stopped_because_another_failed_are_canceled() -> None:
    history = (S.SUBMITTED, S.FETCHING, *BEGUN, (DATA, "failed"), S.FAILED)

    assert told(*history, run=ended(S.FAILED, "it is not there"))[4:] == [
        ("fetcher-dispatcher", "FAILED", f"{DATA} download failed: 'it is not there'..."),
        ("fetcher-dispatcher", "CANCELED", f"{MODEL} download canceled..."),
        ("fetcher-dispatcher", "FAILED", "Aborting execution"),
        *NOT_RUN,
    ]


def test_what_is_being_fetched_when_the_run_ends_has_failed_of_its_reason() -> None:
    run = ended(S.ERROR, "fetching took longer than 24 h")

    assert told(S.SUBMITTED, S.FETCHING, (DATA, "begun"), S.ERROR, run=run)[3:] == [
        (
            "fetcher-dispatcher",
            "FAILED",
            f"{DATA} download failed: 'fetching took longer than 24 h'...",
        ),
        ("fetcher-dispatcher", "FAILED", "Aborting execution"),
        *NOT_RUN,
    ]


def test_a_run_that_fails_later_has_no_failed_downloads() -> None:
    history = (S.SUBMITTED, S.FETCHING, *FETCHED, S.QUEUED, S.STARTING, S.ERROR)

    texts = [text for _, _, text in told(*history, run=ended(S.ERROR, "no disk"))]

    assert "Error executing benchmark: no disk" in texts
    assert "Aborting execution" not in texts


def test_what_is_being_fetched_is_canceled_with_the_run() -> None:
    history = (S.SUBMITTED, S.FETCHING, *BEGUN, (DATA, "done"), EventKind.CANCEL_REQUESTED)

    assert told(*history, S.CANCELED, run=ended(S.CANCELED))[4:] == [
        DOWNLOADED[0],
        ("fetcher-dispatcher", "PENDING", "Canceling downloads..."),
        ("fetcher-dispatcher", "CANCELED", f"{MODEL} download canceled..."),
        ("fetcher-dispatcher", "CANCELED", "Aborting execution"),
        *CANCELED,
    ]


def test_a_run_whose_data_is_here_has_no_downloads_to_cancel() -> None:
    history = (S.SUBMITTED, S.FETCHING, *FETCHED, S.QUEUED, EventKind.CANCEL_REQUESTED, S.CANCELED)

    assert told(*history, run=ended(S.CANCELED))[-5:] == [
        ("fetcher-dispatcher", "PENDING", "Canceling downloads..."),
        ("fetcher-dispatcher", "SUCCEEDED", "No downloads to cancel..."),
        *CANCELED,
    ]


def test_a_second_attempt_after_a_crash_tells_nothing_twice() -> None:
    again = (S.SUBMITTED, S.FETCHING, (DATA, "begun"), *FETCHED, (DATA, "done"), S.QUEUED)

    assert told(*again) == [RECEIVED, INITIATING, *PREPARING, *DOWNLOADED, PROCESSED, *CREATED]


def test_a_run_of_a_schedule_tells_of_its_own_downloads() -> None:
    setting = dataclasses.replace(SETTING, is_spawned=True)
    history = events(S.SUBMITTED, S.FETCHING, *FETCHED, S.QUEUED)

    lines = telling.of_run(RUN, history, setting)

    assert lines[0].text == "Initiating downloads..."


@pytest.mark.parametrize("end", [S.ERROR, S.CANCELED])
def test_what_was_told_once_is_told_again_with_the_same_keys(end: RunState) -> None:
    history = events(
        S.SUBMITTED,
        S.QUEUED,
        S.FETCHING,
        *BEGUN,
        (DATA, "done"),
        EventKind.CANCEL_REQUESTED,
        (MODEL, "failed"),
        end,
    )
    stories = [telling.of_run(RUN, history[:n], SETTING) for n in range(len(history) + 1)]
    keys = [[one.key for one in paging.placed(RUN.id, story)] for story in stories]

    assert all(keys[-1][: len(some)] == some for some in keys)
    assert keys[-1] == sorted(set(keys[-1]))


SOURCES = b"""
[[data.sources]]
src = "https://data.example/set.tgz"
path = "/data"
"""


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (SOURCES, "Initiating downloads..."),
        (SOURCES.replace(b"data.sources", b"server.models"), "Initiating downloads..."),
        (b'# no "sources" and no "models"\n', "Nothing to fetch"),
    ],
)
async def test_the_descriptor_tells_whether_there_is_something_to_fetch(
    wire: Wire, more: bytes, expected: str
) -> None:
    document = builders.a_document(b'spec_version = "0.1.0"\n' + more)
    run = builders.a_run(document=document, submitter="me")
    await wire.store.add(run, document, builders.PLAN, "submitted")
    await wire.move(run.id, S.FETCHING, S.QUEUED)

    [_, fetcher, *_] = await wire.status(run.id)

    assert fetcher["payload"]["message"] == expected
    named = fetcher["payload"]["src_event"]["payload"]
    assert bool(named["datasets"] or named["models"]) == (more.startswith(b"\n[["))
