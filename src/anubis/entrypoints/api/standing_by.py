"""What a replica does that may not act: it passes every connection on to the one that does.

So all replicas answer alike, and whoever watches over them sees all of them ready: a Service need
not know which one leads. Bytes are passed on as they are, TLS included. While nobody leads, we
answer ourselves: that we live, and that nothing can be done yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import datetime

from starlette.types import ASGIApp, Receive, Scope, Send

import anubis
from anubis.entrypoints.api.web_server import WebServer
from anubis.stages.presentation import shapes

CONNECT_SECONDS = 2.0
"""In one cluster; who needs longer is gone."""

MOST_CONNECTIONS = 1000
"""Passed on at once. Who leads has further bounds of its own."""

CHUNK = 64 * 1024

Address = tuple[str, int]
Leader = Callable[[], Address | None]
"""Where the one who leads listens; None: nobody does, as far as is known."""


@contextlib.asynccontextmanager
async def standing_by(
    listener: socket.socket, secure: ssl.SSLContext | None, leader: Leader, since: datetime
) -> AsyncIterator[None]:
    """Answer at a listener for as long as the context lasts. It stays open; what comes in between
    this and whoever answers there next waits in it.
    """
    with socket.create_server(("127.0.0.1", 0)) as own:
        own.setblocking(False)
        server = WebServer(waiting(since), secure)
        serving = asyncio.create_task(server.serve(sockets=[own.dup()]), name="standing by: http")
        passing = _Passing(leader, own.getsockname())
        try:
            await server.listens()
            async with passing.at(listener.dup()):
                yield
        finally:
            server.should_exit = True
            await asyncio.wait([serving])


def waiting(since: datetime) -> ASGIApp:
    """The app of a replica that knows of nobody who leads."""
    health = {"status": "ok", "version": anubis.__version__, "started_at": shapes.iso(since)}
    detail = "no replica leads at the moment; one will within seconds"
    check = {"name": "leader", "ok": False, "detail": detail}
    problem = {"type": "about:blank", "title": "Service Unavailable", "status": 503}
    answers: dict[str, tuple[int, dict[str, object]]] = {
        "/api/v1/health": (200, {**health}),
        "/api/v1/ready": (503, {"ready": False, "checks": [check]}),
    }

    async def app(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001 - as ASGI has it
        status, body = answers.get(scope["path"], (503, {**problem, "detail": detail}))
        kind = b"application/problem+json" if "title" in body else b"application/json"
        # Whoever asks next may be answered by another: nobody must keep this connection.
        headers = [(b"content-type", kind), (b"connection", b"close")]
        headers += [(b"retry-after", b"2")] if status == 503 else []
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})

    return app


class _Passing:
    """Passes connections on to the leader, or to ourselves."""

    def __init__(self, leader: Leader, ourselves: Address) -> None:
        self._leader = leader
        self._ourselves = ourselves
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def at(self, listener: socket.socket) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._accept, sock=listener)
        try:
            yield
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= MOST_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._pass(reader, writer), name="standing by: connection")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(writer.transport.abort)
            stack.enter_context(contextlib.suppress(OSError))  # either side may go at any time
            there, to_there = await self._connected()
            stack.callback(to_there.transport.abort)
            await _until_answered(_pump(reader, to_there), _pump(there, writer))
            writer.close()
            async with asyncio.timeout(CONNECT_SECONDS):
                await writer.wait_closed()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if address := self._leader():
            with contextlib.suppress(OSError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await asyncio.open_connection(*address)
        return await asyncio.open_connection(*self._ourselves)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while chunk := await source.read(CHUNK):
        sink.write(chunk)
        await sink.drain()
    # What was written is sent; whoever is there may still answer it.
    if sink.can_write_eof():
        sink.write_eof()


async def _until_answered(
    asking: Coroutine[None, None, None], answering: Coroutine[None, None, None]
) -> None:
    """Until either side is gone, or all is answered: who asks may have fallen silent before."""
    tasks = question, answer = asyncio.create_task(asking), asyncio.create_task(answering)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if question.done() and question.exception() is None:
            await asyncio.wait([answer])
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
