"""The life of a run as it happens, whatever becomes of the service meanwhile.

A stream that breaks is taken up where it broke: events have a sequence that the store keeps for
ever. So nothing is missed and nothing comes twice, however often the service is restarted.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from datetime import timedelta

import httpx
from httpx_sse import EventSource, ServerSentEvent

from anubis.client import parsing
from anubis.client.calling import Call, decoded, segment
from anubis.client.fields import Fields
from anubis.client.retrying import ESTABLISHED, BackOff
from anubis.client.transport import Setback, Transport
from anubis.domain.errors import UnexpectedAnswer
from anubis.domain.event import Event, EventKind
from anubis.domain.metric import Summary
from anubis.domain.run import TERMINAL, Run, RunId
from anubis.stages.presentation.watching import Snapshot

SILENCE = timedelta(seconds=45)
"""Without a sign of life for so long, a stream is dead: the service gives one every 15 s."""

BREATH = 0.01
"""Seconds without news after which what has come makes a snapshot: what the service stored in one
step arrives within a millisecond or so."""

MOST_AT_ONCE = 500
"""Events in one snapshot, where they come without a pause."""

_STREAM = {"Accept": "text/event-stream", "Cache-Control": "no-store"}


async def watch(transport: Transport, run_id: RunId) -> AsyncGenerator[Snapshot, None]:
    """Yield at once, then at every change; end after the snapshot of the terminal state.

    Raises ServiceUnavailable if the service cannot be reached at first, or stays away for longer
    than ``ESTABLISHED`` has patience; the run goes on in any case.
    """
    gathering = _Gathering()
    attempts = _Attempts(transport)
    while not gathering.has_ended:
        try:
            async with transport.stream(_call(run_id, gathering.last)) as response:
                _must_stream(response)
                attempts.succeeded()
                snapshots = _snapshots(EventSource(response), gathering)
                async with contextlib.aclosing(snapshots):
                    async for snapshot in snapshots:
                        yield snapshot
        except Setback as setback:
            await attempts.failed(setback)
        else:  # it closes its streams when it is shut down, or when we read too slowly
            if not gathering.has_ended:
                await attempts.failed(None)


def _call(run_id: RunId, last: int) -> Call:
    headers = {**_STREAM, "Last-Event-ID": str(last)} if last else _STREAM
    return Call(path=f"/runs/{segment(run_id)}/stream", headers=headers, takes=SILENCE)


def _must_stream(response: httpx.Response) -> None:
    found = response.headers.get("Content-Type", "")
    if not found.startswith(_STREAM["Accept"]):
        raise UnexpectedAnswer(
            f"the service answered something unexpected: found {found!r} instead of a stream of "
            "events; is this Anubis?"
        )


class _Attempts:
    """Rests between attempts; says so when a service that was there goes away and comes back."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._back_off = BackOff(transport.policy, transport.clock)
        self._was_established = False
        self._is_away = False

    def succeeded(self) -> None:
        if self._is_away:
            self._say("answers again")
        self._is_away = False
        self._was_established = True

    async def failed(self, setback: Setback | None) -> None:
        """Rest, or raise the setback's error when that would take too long."""
        if self._was_established and not self._is_away:
            self._back_off = BackOff(ESTABLISHED, self._transport.clock)
            self._is_away = True
            self._say("went away; trying again, the run goes on")
        wait = 0.0 if setback is None else setback.wait
        if not await self._back_off.rest(wait) and setback is not None:
            raise setback.error from setback.__cause__

    def _say(self, what: str) -> None:
        notify = self._transport.notify
        if notify is not None:
            notify(f"the service at {self._transport.endpoint} {what}")


async def _snapshots(source: EventSource, gathering: _Gathering) -> AsyncGenerator[Snapshot, None]:
    """What one stream brings, in as few snapshots as can be without waiting for more."""
    messages = source.aiter_sse()
    upcoming = _next(messages)
    try:
        while True:
            wait = BREATH if gathering.is_worth_showing else None
            await asyncio.wait({upcoming}, timeout=wait)
            if upcoming.done():
                message = upcoming.result()
                if message is None:
                    return  # what is still to be shown is shown with what comes next
                gathering.take(message)
                if not gathering.has_ended:
                    upcoming = _next(messages)
                    if not gathering.is_full:
                        continue
            yield gathering.shown()
            if gathering.has_ended:
                return
    finally:
        upcoming.cancel()
        await asyncio.gather(upcoming, return_exceptions=True)
        await messages.aclose()


def _next(messages: AsyncIterator[ServerSentEvent]) -> asyncio.Future[ServerSentEvent | None]:
    return asyncio.ensure_future(anext(messages, None))


class _Gathering:
    """What has come since the last snapshot, over all streams of a watch."""

    def __init__(self) -> None:
        self.last = 0  #: the sequence of the newest event
        self.has_ended = False
        self._run: Run | None = None
        self._events: list[Event] = []
        self._summaries: Sequence[Summary] = ()
        self._is_new = False
        self._ends_soon = False

    @property
    def is_worth_showing(self) -> bool:
        """Whether there is news; that of the end is shown with the end."""
        return self._is_new and self._run is not None and not self._ends_soon

    @property
    def is_full(self) -> bool:
        """Whether to show what there is even if more is coming without a pause."""
        return self.is_worth_showing and len(self._events) >= MOST_AT_ONCE

    def take(self, message: ServerSentEvent) -> None:
        """Add what a message says. Kinds that we do not know are for newer clients."""
        if message.event == "event":
            self._take_event(parsing.event(Fields(decoded(message.data), "event")))
        elif message.event == "metrics":
            shapes = {"metrics": decoded(message.data)}
            fields = Fields(shapes, "stream").parts("metrics")
            self._take_summaries([parsing.summary(one) for one in fields])
        elif message.event in ("run", "end"):
            self._take_run(parsing.run(Fields(decoded(message.data), "run")))
            self.has_ended = message.event == "end"

    def shown(self) -> Snapshot:
        """Everything since the last one."""
        assert self._run is not None, "nothing is worth showing before the run is known"
        snapshot = Snapshot(run=self._run, events=self._events, summaries=self._summaries)
        self._events, self._is_new = [], False
        return snapshot

    def _take_event(self, event: Event) -> None:
        if event.sequence <= self.last:
            return
        self.last = event.sequence
        self._events.append(event)
        self._is_new = True
        if event.kind is EventKind.STATE and event.data.get("to") in TERMINAL:
            self._ends_soon = True

    def _take_summaries(self, summaries: Sequence[Summary]) -> None:
        self._is_new = self._is_new or summaries != self._summaries
        self._summaries = summaries

    def _take_run(self, run: Run) -> None:
        self._is_new = self._is_new or self._run is None or run.version != self._run.version
        self._run = run
        self._ends_soon = self._ends_soon or run.state.is_terminal
