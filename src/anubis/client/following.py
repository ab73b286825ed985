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
    asked = [
        *(("unit", calling.plain(unit)) for unit in query.units),
        *(("stream", stream.value) for stream in query.streams),
        *calling.query(contains=query.contains or None, after=query.after, tail=query.tail),
    ]
    return Call(path=f"/runs/{segment(run_id)}/logs", query=asked, headers={"Accept": NDJSON})
