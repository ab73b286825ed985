"""Keep a worker turning until it is told to stop or has had nothing to do for a while."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from datetime import timedelta

import structlog

from anubis.domain.errors import TemporaryError
from anubis.ports.clock import Clock
from anubis.runtime.pulse import Pulse
from anubis.runtime.working import Worker

RETRY_AFTER = 1.0
"""Seconds to wait when the store did not answer: a full disk or a long lock of somebody else."""


async def serve(
    worker: Worker,
    has_work: Callable[[], Awaitable[bool]],
    clock: Clock,
    *,
    stop: asyncio.Event,
    idle_exit: timedelta | None,
    pulse: Pulse | None = None,
) -> None:
    """Return when ``stop`` is set, or when there was no work for ``idle_exit``."""
    log = structlog.get_logger("anubis.runtime")
    idle_since = clock.monotonic()
    has_begun = False
    while not stop.is_set():
        try:
            if not has_begun:
                await worker.begin()
                has_begun = True
                gc.freeze()  # what was loaded stays: with many runs, a tenth of the time went there
                _beat(pulse, clock)
            await worker.turn()
            busy = not worker.is_idle or await has_work()
        except TemporaryError as error:
            log.warning("store_did_not_answer", error=str(error))
            await clock.sleep(RETRY_AFTER)
            continue
        _beat(pulse, clock)
        if busy:
            idle_since = clock.monotonic()
        elif idle_exit is not None and _passed(idle_exit, idle_since, clock):
            return


def _passed(duration: timedelta, since: float, clock: Clock) -> bool:
    return clock.monotonic() - since >= duration.total_seconds()


def _beat(pulse: Pulse | None, clock: Clock) -> None:
    if pulse is not None:
        pulse.turned(clock)
