"""The background runtime of one home, as a process: carries runs until there is nothing to do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal

from anubis.bootstrap import carrying, stores
from anubis.runtime import logging, serving
from anubis.runtime.locking import RuntimeLock
from anubis.settings.model import Settings


def main(settings: Settings, lock: RuntimeLock) -> None:
    """Be the runtime of this home until there is nothing to do. The lock must be held."""
    os.chdir("/")  # do not keep a file system from being unmounted
    logging.set_up(settings.runtime_log, settings.guardian_log)
    while True:
        with contextlib.suppress(OSError):  # for people; a full disk must not keep us from work
            settings.runtime_pid.write_text(f"{os.getpid()}\n")
        stopped = asyncio.run(_serve(settings))
        settings.runtime_pid.unlink(missing_ok=True)
        lock.release()
        # A command that stored a run while we held the lock relied on us to see it.
        if stopped or not asyncio.run(_has_work(settings)) or not lock.acquire():
            return


async def _serve(settings: Settings) -> bool:
    """Carry runs and fire schedules until idle (False) or told to stop by a signal (True)."""
    async with stores.opened(settings) as kept, carrying.opened(settings, kept) as carried:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, carried.leave)
        await serving.serve(
            carried.worker,
            kept.has_work,
            carried.clock,
            stop=carried.stop,
            idle_exit=settings.idle_exit,
        )
    return carried.stop.is_set()


async def _has_work(settings: Settings) -> bool:
    async with stores.opened(settings) as kept:
        return await kept.has_work()
