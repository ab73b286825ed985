"""The output of a run as a stream, taken up where it broke: lines have numbers."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
from collections.abc import AsyncGenerator

import httpx

from anubis.client import calling, parsing
from anubis.client.calling import Call, decoded, segment
from anubis.client.fields import Fields
from anubis.client.retrying import BackOff
from anubis.client.transport import Setback, Transport
from anubis.domain.logline import LogLine
from anubis.domain.run import RunId
from anubis.ports.log_store import LogQuery

NDJSON = "application/x-ndjson"


LONGEST_TAIL = 10_000
"""Lines from the end that the service looks for by itself."""


def lines(transport: Transport, run_id: RunId, query: LogQuery) -> AsyncGenerator[LogLine, None]:
    """The lines of a run that match, one by one."""
    is_long = query.tail is not None and query.tail > LONGEST_TAIL
    return (_end if is_long else _stream)(transport, run_id, query)


async def _end(
    transport: Transport, run_id: RunId, query: LogQuery
) -> AsyncGenerator[LogLine, None]:
    last = collections.deque[LogLine](maxlen=query.tail)
    async for line in _stream(transport, run_id, dataclasses.replace(query, tail=None)):
        last.append(line)
    for line in last:
        yield line


async def _stream(
    transport: Transport, run_id: RunId, query: LogQuery
) -> AsyncGenerator[LogLine, None]:
    back_off: BackOff | None = None
    last = 0
    while True:
        try:
            async with transport.stream(_call(run_id, query)) as response:
                back_off = None
                async with contextlib.aclosing(_split(response)) as texts:
                    async for text in texts:
                        line = parsing.line(Fields(decoded(text), "line"))
                        last = line.number
                        yield line
        except Setback as setback:
            back_off = back_off or BackOff(transport.policy, transport.clock)
            if not await back_off.rest(setback.wait):
                raise setback.error from setback.__cause__
        else:
            return
        if last:  # what is left of the end that was asked for, is all that comes after
            query = dataclasses.replace(query, after=last, tail=None)


async def text(transport: Transport, run_id: RunId, query: LogQuery) -> AsyncGenerator[bytes, None]:
    """The same as one text. One that breaks off is asked for again, without what has come."""
    if query.tail is not None:  # which lines are the last may have changed in between
        async with contextlib.aclosing(lines(transport, run_id, query)) as some:
            async for line in some:
                yield line.text
        return
    read, back_off = 0, None
    while True:
        try:
            async with transport.stream(_text_call(run_id, query, read)) as response:
                back_off = None
                async for piece in response.aiter_bytes():
                    read += len(piece)
                    yield piece
        except Setback as setback:
            back_off = back_off or BackOff(transport.policy, transport.clock)
            if not await back_off.rest(setback.wait):
                raise setback.error from setback.__cause__
        else:
            return


async def _split(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """Whole lines. httpx would also split at characters that JSON leaves as they are, like U+2028.

    What follows the last newline is the half of a line that broke off, and is asked for again.
    """
    rest = b""
    async for chunk in response.aiter_bytes():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line


def _call(run_id: RunId, query: LogQuery) -> Call:
    asked = _asked(query)
    return Call(path=f"/runs/{segment(run_id)}/logs", query=asked, headers={"Accept": NDJSON})


def _text_call(run_id: RunId, query: LogQuery, skip: int) -> Call:
    # Packing costs a machine next door more than it saves on the way.
    headers = {"Accept": "text/plain", "Accept-Encoding": "identity"}
    asked = [*_asked(query), *calling.query(skip=skip)]
    return Call(path=f"/runs/{segment(run_id)}/logs", query=asked, headers=headers)


def _asked(query: LogQuery) -> list[tuple[str, str]]:
    return [
        *(("unit", calling.plain(unit)) for unit in query.units),
        *(("stream", stream.value) for stream in query.streams),
        *calling.query(contains=query.contains or None, after=query.after, tail=query.tail),
    ]
