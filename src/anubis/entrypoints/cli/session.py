"""Open the application for one command, and close it whatever happens.

The event loop starts and ends here: the one ``asyncio.run`` of the command line.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

from anubis.bootstrap import embedded
from anubis.bootstrap.application import Application
from anubis.settings import loading

Opener = Callable[[], contextlib.AbstractAsyncContextManager[Application]]
"""Gives the application. click hands it to commands as their object; None means ours."""

Answer = TypeVar("Answer")


def call(opener: Opener | None, work: Callable[[Application], Awaitable[Answer]]) -> Answer:
    """Do the work of a command with an open application."""

    async def opened() -> Answer:
        async with (opener or _embedded)() as application:
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


def _embedded() -> contextlib.AbstractAsyncContextManager[Application]:
    return embedded.application(loading.load(os.environ))
