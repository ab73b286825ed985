"""The background runtime of one home, as a process.

Worker ── SqliteRunStore, LocalLogStore, DirectorySeriesStore
       ├─ ProcessEngine ──► zygote ──► one shim per run
       └─ PipeReceiver ◄── commands
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket

from anubis.adapters.clock.system import SystemClock
from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.adapters.event_bus.pipe import PipeReceiver
from anubis.adapters.log_store.local import LocalLogStore
from anubis.adapters.run_store.sqlite import SqliteRunStore
from anubis.adapters.series_store.directory import DirectorySeriesStore
from anubis.bootstrap import embedded
from anubis.domain.run import WorkerId
from anubis.runtime import logging, pending, serving
from anubis.runtime.carrying import Workshop
from anubis.runtime.locking import RuntimeLock
from anubis.runtime.supervising import Supervisor
from anubis.runtime.working import Worker
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
    """Carry runs until idle (False) or told to stop by a signal (True).

    Raises what the task that keeps the leases died of: without it we must not go on, and whoever
    guards our runs starts another runtime.
    """
    stop = asyncio.Event()
    clock = SystemClock()
    defects: list[Exception] = []

    async def leave(error: Exception) -> None:
        defects.append(error)
        stop.set()

    async with contextlib.AsyncExitStack() as stack:
        bus = PipeReceiver.open(settings.wake, stack)
        _stop_on_signals(stop, bus)
        store = await stack.enter_async_context(SqliteRunStore.open(settings.database))
        engine = await stack.enter_async_context(
            ProcessEngine(settings.runs, revive=embedded.RUNTIME)
        )
        workshop = Workshop(
            # The lock makes us the only one of this name; what an earlier life held is ours.
            worker=WorkerId(f"embedded@{socket.gethostname()}"),
            store=store,
            engines={"process": engine},
            logs=LocalLogStore(settings.logs),
            series=DirectorySeriesStore(settings.series),
            clock=clock,
        )
        supervisor = await stack.enter_async_context(Supervisor())
        worker = Worker(workshop, bus, supervisor, slots=settings.slots, lease=settings.lease)
        supervisor.start(worker.keep_leases, name="leases", failed=leave)
        await serving.serve(worker, store, clock, stop=stop, idle_exit=settings.idle_exit)
        if defects:
            raise defects[0]
    return stop.is_set()


async def _has_work(settings: Settings) -> bool:
    async with SqliteRunStore.open(settings.database) as store:
        return await pending.has_work(store)


def _stop_on_signals(stop: asyncio.Event, bus: PipeReceiver) -> None:
    """A signal ends the turn in progress; runs go on without us and are taken up later."""

    def handle() -> None:
        stop.set()
        bus.wake()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, handle)
