"""The service as a process: listen, serve until told to stop, leave without losing anything."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging as foreign_logging
import os
import resource
import ssl
from collections.abc import Callable

import structlog
import uvloop

from anubis.adapters.clock.system import SystemClock
from anubis.bootstrap import leading, service
from anubis.bootstrap.carrying import Carrying
from anubis.domain.errors import EngineUnavailable
from anubis.entrypoints.api import app, certificates, listening
from anubis.entrypoints.api.listening import Listener
from anubis.entrypoints.api.standing_by import standing_by
from anubis.entrypoints.api.web_server import WebServer
from anubis.runtime import logging
from anubis.runtime.supervising import Work
from anubis.settings.model import Settings


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
        async with contextlib.AsyncExitStack() as stack:
            keep = await _led(settings, listener, secure, stack)
            if keep is None:
                return
            served, carried = await stack.enter_async_context(service.opened(settings, door))
            carried.start(functools.partial(_lead, keep, carried), name="leading")
            _allow_many_connections()
            server = WebServer(app.create(served), secure)
            http = functools.partial(server.serve, sockets=[listener.socket])
            task = carried.start(http, name="http")
            if await server.listens():
                announce(f"listening on {door.address}")
            await carried.stop.wait()
            served.broadcaster.close()
            server.should_exit = True
            await asyncio.wait([task])


_NO_TLS = "tokens and results travel in the clear; give --tls-certificate, or put a proxy in front"


async def _led(
    settings: Settings,
    listener: Listener,
    secure: ssl.SSLContext | None,
    stack: contextlib.AsyncExitStack,
) -> Work | None:
    """Wait until it is our turn to serve this home, if there are several of us. Gives what must
    go on for as long as we serve; None: we were told to leave before.
    """
    if not settings.leader_lease:
        return _nothing
    candidate = await stack.enter_async_context(leading.opened(settings, listener.bound))
    async with standing_by(listener.socket, secure, candidate.leader, SystemClock().now()):
        leads = await candidate.lead()
    return candidate.keep if leads else None


async def _lead(keep: Work, carried: Carrying) -> None:
    """Leave when others may lead. That is no defect, and needs no traceback in the log."""
    try:
        await keep()
    except EngineUnavailable as lost:
        carried.defects.append(lost)
        carried.leave()


async def _nothing() -> None:
    """Alone in a home, nothing must be kept up."""


def _allow_many_connections() -> None:
    """A thousand watchers are a thousand files. Programs get the limit we were started with."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
