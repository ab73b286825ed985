"""Open the application for one command, and close it whatever happens.

It is that of this machine, or that of the service which is registered: never one instead of the
other. The event loop starts and ends here: the one ``asyncio.run`` of the command line.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

from anubis.bootstrap.application import Application
from anubis.entrypoints.cli import terminal
from anubis.settings import loading, registering

Opener = Callable[[], contextlib.AbstractAsyncContextManager[Application]]
"""Gives the application. click hands it to commands as their object; None means ours."""

Answer = TypeVar("Answer")


def call(opener: Opener | None, work: Callable[[Application], Awaitable[Answer]]) -> Answer:
    """Do the work of a command with an open application."""

    async def opened() -> Answer:
        async with (opener or _chosen)() as application:
            return await work(application)

    return asyncio.run(opened())


def read(opener: Opener | None, work: Callable[[Application], Awaitable[Answer]]) -> Answer:
    """The same for a command that only reads; it also revives a runtime that was killed."""

    async def caring(application: Application) -> Answer:
        await application.ensure_runtime()
        return await work(application)

    return call(opener, caring)


def person() -> str:
    """Who sits here, for the record of submissions and cancels."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no entry for this user id, as in some containers
        return f"uid {os.getuid()}"


def _chosen() -> contextlib.AbstractAsyncContextManager[Application]:
    # Each in its own branch and not above: neither column pays for importing the other.
    connection = registering.in_force(os.environ)
    if connection is None:
        from anubis.bootstrap import embedded

        return embedded.application(loading.load(os.environ))

    from anubis.bootstrap import remote

    return remote.application(connection, loading.home(os.environ), person(), terminal.say)
