"""Connections of clients that send too much, too slowly, or do not read: over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from anubis.entrypoints.api import protocol
from anubis.entrypoints.api.protocol import BoundedProtocol

PATIENCE = 20.0
CHUNKED = b"POST /%b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers at once, after reading the body, or with more than anybody reads."""
    seen = []
    while scope["path"] == "/whole":
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        if not message["more_body"]:
            seen = sorted(name.decode() for name, _ in scope["headers"])
            break
    size = 64 * 2**20 if scope["path"] == "/much" else 0
    body = ",".join(seen).encode() + bytes(size)
    length = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": length})
    await send({"type": "http.response.body", "body": body})


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server of this protocol."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as bound:
        config = uvicorn.Config(_app, http=BoundedProtocol, lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        server.capture_signals = contextlib.nullcontext  # type: ignore[assignment,method-assign]
        task = asyncio.create_task(server.serve(sockets=[bound]))
        reader, writer = await asyncio.open_connection(*bound.getsockname(), limit=1024)
        try:
            async with asyncio.timeout(PATIENCE):
                yield reader, writer
        finally:
            writer.transport.abort()
            server.should_exit = True
            await task


async def _must_be_cut_off(writer: asyncio.StreamWriter, piece: bytes) -> None:
    """Send without end."""
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)  # the server has its turn in the same loop


@pytest.mark.parametrize("path", [b"at-once", b"whole"])
@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"0\r\n", b"x: y\r\n" * 1000),
        (b"0\r\nx: ", b"y" * 8000),
        (b"1;", b"y" * 8000),
    ],
    ids=["many trailers", "one long trailer", "one long extension"],
)
async def test_what_is_no_body_is_bounded_after_the_head_too(
    path: bytes, start: bytes, piece: bytes
) -> None:
    async with connected() as (_, writer):
        writer.write(CHUNKED % path + start)
        await _must_be_cut_off(writer, piece)


async def test_a_body_of_many_small_chunks_is_taken() -> None:
    async with connected() as (reader, writer):
        writer.write(CHUNKED % b"whole")
        for _ in range(20):
            writer.write(b"1\r\na\r\n" * 10_000)
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"


async def test_a_header_after_the_body_is_none_of_the_request() -> None:
    async with connected() as (reader, writer):
        writer.write(CHUNKED % b"whole" + b"0\r\nAuthorization: Bearer x\r\n\r\n")
        answer = await reader.readuntil(b"transfer-encoding")
        assert b"authorization" not in answer


@pytest.mark.parametrize(
    "sent",
    [
        CHUNKED % b"whole",
        CHUNKED % b"whole" + b"5\r\nab",
        CHUNKED % b"whole" + b"0\r\nx: y",
        CHUNKED % b"at-once",
        CHUNKED % b"at-once" + b"5\r\nab",
        b"POST /at-once HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na",
        b"GET /at-once HTTP/1.1\r\nHost: x\r\n\r\n\r\n",
        b"GET /at-once HTTP/1.1\r\nHost: x\r\n\r\nGET",
    ],
)
async def test_who_stops_in_the_middle_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    for name in ("HEAD_SECONDS", "BODY_SECONDS", "REST_SECONDS"):
        monkeypatch.setattr(protocol, name, 0.2)
    async with connected() as (reader, writer):
        for piece in sent[:-1], sent[-1:]:
            writer.write(piece)
            await asyncio.sleep(0.05)
        while await reader.read(1000):
            pass


async def test_who_goes_on_to_send_what_was_answered_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protocol, "REST_SECONDS", 0.2)
    async with connected() as (_, writer):
        writer.write(CHUNKED % b"at-once")
        await _must_be_cut_off(writer, b"1\r\na\r\n")


async def test_a_connection_goes_on_after_an_answer_that_came_early() -> None:
    async with connected() as (reader, writer):
        writer.write(CHUNKED % b"at-once")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"1\r\na\r\n0\r\n\r\nGET /at-once HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"


async def test_who_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "READER_SECONDS", 0.2)
    async with connected() as (reader, writer):
        writer.write(b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.sleep(1)  # longer than what is allowed, by the same clock
        size = 0
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(2**20):
                size += len(piece)
        assert size < 64 * 2**20
