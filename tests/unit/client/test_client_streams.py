"""Streams that break are taken up where they broke: nothing is lost, nothing comes twice."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Sequence

import httpx
import pytest

from anubis.client import Client, Manner
from anubis.domain import errors
from anubis.domain.event import Event, EventKind
from anubis.domain.logline import LogLine
from anubis.domain.observation import Stream
from anubis.domain.run import Run, RunState
from anubis.ports.log_store import LogQuery
from anubis.stages.presentation import shapes
from anubis.stages.presentation.watching import Snapshot
from anubis.testing import builders
from anubis.testing.clock import NOON

from .given import Service, problem, refused, run_shape

RUN_ID = builders.a_run_id()


def a_run(state: RunState, version: int) -> Run:
    return dataclasses.replace(builders.a_run(), state=state, version=version)


def an_event(sequence: int, to: RunState) -> Event:
    return Event(
        run_id=RUN_ID,
        number=sequence,
        sequence=sequence,
        at=NOON,
        kind=EventKind.STATE,
        message=f"now {to}",
        data={"to": to.value},
    )


def sent(kind: str, value: object, number: int | None = None) -> bytes:
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {kind}\ndata: {json.dumps(value)}\n\n".encode()


def run(state: RunState, version: int, kind: str = "run") -> bytes:
    return sent(kind, run_shape(a_run(state, version)))


def event(sequence: int, to: RunState) -> bytes:
    return sent("event", shapes.event_shape(an_event(sequence, to)), sequence)


BREAK = httpx.ReadError("connection reset")
FOREVER = asyncio.CancelledError()


class Broken(httpx.AsyncByteStream):
    """Pieces that come one after the other; an exception among them is raised."""

    def __init__(self, pieces: Sequence[bytes | BaseException]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, asyncio.CancelledError):
                await asyncio.Event().wait()
            elif isinstance(piece, BaseException):
                raise piece
            else:
                yield piece


def stream(*pieces: bytes | BaseException, kind: str = "text/event-stream") -> httpx.Response:
    return httpx.Response(200, headers={"Content-Type": kind}, stream=Broken(pieces))


async def watched(service: Service) -> list[Snapshot]:
    async with service.client() as client:
        return [snapshot async for snapshot in client.watch(RUN_ID)]


def told(snapshots: Sequence[Snapshot]) -> list[int]:
    return [one.sequence for snapshot in snapshots for one in snapshot.events]


S = RunState
BEGINNING = [run(S.RUNNING, 3), sent("metrics", []), event(7, S.SUBMITTED), event(9, S.RUNNING)]
END = [event(12, S.SUCCEEDED), run(S.SUCCEEDED, 4), run(S.SUCCEEDED, 4, "end")]


async def test_a_run_that_has_ended_is_one_snapshot() -> None:
    service = Service(stream(run(S.SUCCEEDED, 4), sent("metrics", []), *BEGINNING[2:], *END))
    [snapshot] = await watched(service)
    assert snapshot.run.state is S.SUCCEEDED
    assert told([snapshot]) == [7, 9, 12]


async def test_the_end_is_told_together_with_its_state() -> None:
    snapshots = await watched(Service(stream(*BEGINNING, *END)))
    assert snapshots[-1].run.state is S.SUCCEEDED
    assert snapshots[-1].events[-1].data["to"] == "SUCCEEDED"
    assert told(snapshots) == [7, 9, 12]


@pytest.mark.parametrize("cut", range(len(BEGINNING + END)))
@pytest.mark.parametrize("how", [[BREAK], [], [b"event: event\ndata: {half"]], ids=str)
async def test_wherever_a_stream_breaks_nothing_is_lost_or_told_twice(
    cut: int, how: list[bytes | BaseException]
) -> None:
    everything = BEGINNING + END

    def again(request: httpx.Request) -> httpx.Response:
        seen = int(request.headers.get("Last-Event-ID", "0"))
        state = S.SUCCEEDED
        missing = [event(n, to) for n, to in EVENTS if n > seen]
        return stream(run(state, 4), sent("metrics", []), *missing, run(state, 4, "end"))

    service = Service(stream(*everything[:cut], *how), again)
    snapshots = await watched(service)
    assert told(snapshots) == [7, 9, 12]
    assert snapshots[-1].run.state is S.SUCCEEDED


EVENTS = [(7, S.SUBMITTED), (9, S.RUNNING), (12, S.SUCCEEDED)]


async def test_a_service_that_was_there_is_waited_for() -> None:
    away = [refused()] * 50
    service = Service(stream(*BEGINNING, BREAK), *away, stream(*BEGINNING, *END))
    assert told(await watched(service)) == [7, 9, 12]
    assert sum(service.clock.pauses) > 60


async def test_the_person_is_told_once_when_the_service_goes_and_comes_back() -> None:
    said: list[str] = []
    service = Service(stream(*BEGINNING, BREAK), refused(), refused(), stream(*END))
    manner = Manner(
        clock=service.clock, transport=httpx.MockTransport(service.answer), notify=said.append
    )
    async with Client("bench:8080", manner=manner) as client:
        assert [snapshot async for snapshot in client.watch(RUN_ID)]
    assert said == [
        "the service at bench:8080 went away; trying again, the run goes on",
        "the service at bench:8080 answers again",
    ]


async def test_a_service_that_was_never_there_is_given_up_soon() -> None:
    service = Service(refused())
    with pytest.raises(errors.ServiceUnavailable, match=r"service\.test:8080"):
        await watched(service)
    assert sum(service.clock.pauses) <= 5


async def test_a_run_purged_meanwhile_is_said() -> None:
    gone = problem(404, "run-not-found", "no run has an id like this")
    with pytest.raises(errors.RunNotFound):
        await watched(Service(stream(*BEGINNING, BREAK), gone))


async def test_a_page_instead_of_a_stream_is_recognised() -> None:
    with pytest.raises(errors.UnexpectedAnswer, match="something unexpected"):
        await watched(Service(stream(b"<html>", kind="text/html")))


async def test_what_a_newer_service_adds_is_passed_over() -> None:
    snapshots = await watched(Service(stream(sent("weather", "fine"), *BEGINNING, *END)))
    assert told(snapshots) == [7, 9, 12]


async def test_events_without_a_pause_are_shown_before_they_end() -> None:
    many = [event(n, S.RUNNING) for n in range(1, 1201)]
    snapshots = await watched(Service(stream(run(S.RUNNING, 3), *many, run(S.FAILED, 9, "end"))))
    assert told(snapshots) == list(range(1, 1201))
    assert len(snapshots) >= 3


def a_line(number: int) -> LogLine:
    return LogLine(
        number=number, at=NOON, unit="u", stream=Stream.STDOUT, text=b"line %d\n" % number
    )


def lines(*numbers: int) -> list[bytes]:
    return [
        json.dumps({**shapes.line_shape(a_line(one)), "newline": True, "base64": None}).encode()
        + b"\n"
        for one in numbers
    ]


async def test_output_is_read_on_where_the_connection_broke() -> None:
    half = lines(3)[0][:20]
    service = Service(
        stream(*lines(1, 2), half, BREAK, kind="application/x-ndjson"),
        refused(),
        stream(*lines(3, 4), kind="application/x-ndjson"),
    )
    async with service.client() as client:
        query = LogQuery(units=["u"], contains="li", tail=4)
        found = [line async for line in client.lines(RUN_ID, query)]
    assert found == [a_line(number) for number in (1, 2, 3, 4)]
    first, *_, last = [dict(request.url.params) for request in service.requests]
    assert first == {"unit": "u", "contains": "li", "after": "0", "tail": "4"}
    assert last == {"unit": "u", "contains": "li", "after": "2"}


async def test_a_text_is_read_on_where_the_connection_broke() -> None:
    service = Service(
        stream(b"one\ntw", b"o\n\xff", BREAK, kind="text/plain"),
        refused(),
        stream(b"\x00 three", kind="text/plain"),
    )
    async with service.client() as client:
        pieces = [piece async for piece in client.text(RUN_ID, LogQuery(units=["u"]))]
    assert b"".join(pieces) == b"one\ntwo\n\xff\x00 three"
    first, *_, last = [dict(request.url.params) for request in service.requests]
    assert first == {"unit": "u", "after": "0", "skip": "0"}
    assert last == {"unit": "u", "after": "0", "skip": "9"}


async def test_the_end_of_a_text_is_read_by_lines() -> None:
    service = Service(stream(*lines(3, 4), kind="application/x-ndjson"))
    async with service.client() as client:
        pieces = [piece async for piece in client.text(RUN_ID, LogQuery(tail=2))]
    assert b"".join(pieces) == b"line 3\nline 4\n"


async def test_characters_that_some_call_line_ends_are_none_to_us() -> None:
    odd = "a\u2028b\x85c\u2029d\x0ce"
    line = {**json.loads(lines(1)[0]), "text": odd}
    text = json.dumps(line, ensure_ascii=False).encode() + b"\n"
    service = Service(stream(text[:95], text[95:], kind="application/x-ndjson"))
    async with service.client() as client:
        [found] = [line async for line in client.lines(RUN_ID)]
    assert found.text.decode() == f"{odd}\n"
    shape = {**shapes.event_shape(an_event(7, S.RUNNING)), "message": odd}
    told = f"event: event\nid: 7\ndata: {json.dumps(shape, ensure_ascii=False)}\n\n".encode()
    snapshots = await watched(Service(stream(run(S.RUNNING, 3), told, *END)))
    assert snapshots[0].events[0].message == odd


async def test_leaving_in_the_middle_gives_the_connection_back() -> None:
    service = Service(stream(*BEGINNING, FOREVER))
    async with service.client() as client:
        snapshots = client.watch(RUN_ID)
        await anext(snapshots)
        await snapshots.aclose()
