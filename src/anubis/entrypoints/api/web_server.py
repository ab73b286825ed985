"""uvicorn as we use it: bounded, quiet, and with the signals left to us."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from anubis.entrypoints.api import listening
from anubis.entrypoints.api.protocol import BoundedProtocol

KEEP_ALIVE = 75
"""Seconds that an idle connection stays, as with most servers."""

LAST_WORDS = 1
"""Seconds for requests in progress when we leave. What takes longer is asked again."""


class WebServer(uvicorn.Server):
    """Serves an app over sockets until ``should_exit``."""

    def __init__(self, app: ASGIApp, secure: ssl.SSLContext | None) -> None:
        super().__init__(_configured(app, secure))
        self._is_decided = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them as they are."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to serve these sockets."""
        await super().startup(sockets)
        self._is_decided.set()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until ``should_exit``."""
        try:
            await super().serve(sockets)
        finally:
            self._is_decided.set()

    async def listens(self) -> bool:
        """Whether connections are served, once that is known."""
        await self._is_decided.wait()
        return self.started


def _configured(app: ASGIApp, secure: ssl.SSLContext | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,  # Envelope writes one, without what is nobody's business
        server_header=False,
        proxy_headers=False,  # anybody can send them; the address of a proxy is the truth here
        backlog=listening.BACKLOG,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=LAST_WORDS,
        ssl_context_factory=None if secure is None else lambda *_: secure,
    )
