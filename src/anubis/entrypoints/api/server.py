"""The service as a process: listen, serve until told to stop, leave without losing anything."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging as foreign_logging
import os
import resource
import socket
import ssl
from collections.abc import Callable, Iterator

import structlog
import uvicorn
import uvloop
from fastapi import FastAPI

from anubis.bootstrap import service
from anubis.entrypoints.api import app, certificates, listening
from anubis.entrypoints.api.protocol import BoundedProtocol
from anubis.runtime import logging
from anubis.settings.model import Settings

KEEP_ALIVE = 75
"""Seconds that an idle connection stays, as with most servers."""

LAST_WORDS = 1
"""Seconds for requests in progress when we leave. What takes longer is asked again."""


def run(settings: Settings, announce: Callable[[str], None]) -> None:
    """Serve a home until SIGTERM or SIGINT. ``announce`` is told the address when we listen.

    Raises UserError, with what to do, for an address, certificate or home that cannot be used.
    """
    logging.set_up(settings.guardian_log)
    foreign_logging.basicConfig(format="%(asctime)s [%(levelname)s] %(message)s")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, announce))


async def _serve(settings: Settings, announce: Callable[[str], None]) -> None:
    secure = certificates.context(settings.tls_certificate, settings.tls_key)
    listener = listening.inherited(os.environ) or listening.bind(settings.host, settings.port)
    if secure is None and not listener.is_loopback:
        structlog.get_logger("anubis.api").warning("no_tls", advice=_NO_TLS)
    with contextlib.closing(listener.socket):
        door = service.Door(
            address=listener.address(is_secure=secure is not None),
            requires_tokens=settings.requires_tokens or not listener.is_loopback,
        )
        async with service.opened(settings, door) as (served, carried):
            _allow_many_connections()
            server = _Server(_configured(app.create(served), secure))
            http = functools.partial(server.serve, sockets=[listener.socket])
            task = carried.start(http, name="http")
            if await server.listens():
                announce(f"listening on {door.address}")
            await carried.stop.wait()
            served.broadcaster.close()
            server.should_exit = True
            await asyncio.wait([task])


_NO_TLS = "tokens and results travel in the clear; give --tls-certificate, or put a proxy in front"


class _Server(uvicorn.Server):
    """uvicorn, with the signals left to us."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
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


def _configured(api: FastAPI, secure: ssl.SSLContext | None) -> uvicorn.Config:
    return uvicorn.Config(
        api,
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


def _allow_many_connections() -> None:
    """A thousand watchers are a thousand files. Programs get the limit we were started with."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
