"""Answers that do not end soon: live events, and output of any size."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from anubis.runtime.broadcasting import Watch
from anubis.stages.presentation import frames

EVENT_STREAM: Final = "text/event-stream"

SILENCE = 15.0
"""Seconds after which a comment is sent: many proxies close what is silent for half a minute."""

LOOK_EVERY = 15.0
"""Seconds after which it is looked whether the client's token still opens anything: it may be
revoked, or expire, while the stream goes on."""

PATIENCE = 30.0
"""Seconds that a client may take to accept what is sent. Later it can go on where it was."""

CHUNK = 64 * 1024
"""Bytes that are sent at once."""


class EventStream(Response):
    """A watcher's stream, until it ends, the client leaves, or the client stops reading."""

    media_type = EVENT_STREAM

    def __init__(self, opening: AbstractAsyncContextManager[Watch]) -> None:
        # Proxies must not keep events back until they have enough of them.
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._opening = opening
        self._is_gone = False
        self._pause: asyncio.Timeout | None = None  #: while it waits for news

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer. Errors of opening are raised before anything is sent."""
        is_welcome: Callable[[], Awaitable[bool]] = scope["state"]["is_welcome"]
        async with self._opening as watch:
            headers = self.raw_headers
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            # It lives as long as this call; the framework has no other way to hear of a departure.
            leaving = asyncio.create_task(self._notice_leaving(receive), name="leaving")
            try:
                await self._pump(watch, send, is_welcome)
            except TimeoutError:  # it does not read: the connection ends, and it may come back
                pass
            finally:
                leaving.cancel()
                await asyncio.gather(leaving, return_exceptions=True)

    async def _pump(
        self, watch: Watch, send: Send, is_welcome: Callable[[], Awaitable[bool]]
    ) -> None:
        now = asyncio.get_running_loop().time
        text: bytes | None = frames.COMMENT  # at once, so that the client knows it is connected
        look_at = now() + LOOK_EVERY
        while text is not None and not self._is_gone:
            if now() >= look_at:
                if not await is_welcome():
                    break
                look_at = now() + LOOK_EVERY
            async with asyncio.timeout(PATIENCE):
                await send({"type": "http.response.body", "body": text, "more_body": True})
            text = await self._next(watch)
        if not self._is_gone:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _next(self, watch: Watch) -> bytes | None:
        try:
            async with asyncio.timeout(SILENCE) as self._pause:
                return await watch.next()
        except TimeoutError:
            return frames.COMMENT
        finally:
            self._pause = None

    async def _notice_leaving(self, receive: Receive) -> None:
        # HTTPException: it sends a body, and more than anybody needs to ask for a stream.
        with contextlib.suppress(HTTPException):
            while (await receive())["type"] != "http.disconnect":
                pass
        self._is_gone = True
        if self._pause is not None:
            self._pause.reschedule(asyncio.get_running_loop().time())


async def chunked(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes, in pieces that are worth sending; others get their turn between them."""
    gathered: list[bytes] = []
    size = 0
    async for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= CHUNK:
            yield b"".join(gathered)
            gathered.clear()
            size = 0
            await asyncio.sleep(0)
    if gathered:
        yield b"".join(gathered)


async def streamed(
    pieces: AsyncIterator[bytes], media_type: str, headers: dict[str, str] | None = None
) -> Response:
    """An answer of any size. What is wrong before the first piece is raised here."""
    chunks = chunked(pieces)
    first = await anext(chunks, b"")

    async def all_of_it() -> AsyncIterator[bytes]:
        yield first
        async for chunk in chunks:
            yield chunk

    return StreamingResponse(all_of_it(), media_type=media_type, headers=headers)
