"""The embedded column: everything in one home directory, nothing but Python needed.

application ── Stores        what is kept
            └─ PipeSender    <home>/wake ──► background runtime, or service
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

from anubis.adapters.clock.system import SystemClock
from anubis.adapters.event_bus.pipe import PipeSender
from anubis.bootstrap import engines, stores
from anubis.bootstrap.local import LocalApplication
from anubis.bootstrap.stores import Stores
from anubis.domain.errors import StoreUnusable
from anubis.domain.problem import Problem
from anubis.ports.dataset_cache import DatasetCache
from anubis.runtime import launching
from anubis.runtime.locking import RuntimeLock
from anubis.runtime.succession import Seat
from anubis.settings.model import Settings

RUNTIME = (sys.executable, "-m", "anubis", "runtime")


@contextlib.asynccontextmanager
async def application(settings: Settings) -> AsyncIterator[LocalApplication]:
    """Open an installation. Creates the home when it is not there."""
    make_home(settings)
    async with stores.opened(settings) as kept:
        bus = PipeSender(settings.wake)
        patience, clock = launching.Patience(settings.runtime_log), SystemClock()

        async def wake_runtime() -> None:
            bus.wake()
            if revival(settings) is None:
                return
            was_started = launching.ensure(
                RUNTIME,
                runtime_environment(settings),
                lock=RuntimeLock(settings.runtime_lock),
                log=settings.runtime_log,
            )
            if was_started:
                patience.note_start(clock.monotonic())

        async def renew_runtime(document: str) -> tuple[Problem, ...]:
            # Here and not above: only submissions may need another runtime.
            from anubis.bootstrap import renewing

            return await renewing.renewed(settings, kept, clock, document)

        local = over(kept, settings, wake_runtime)
        yield dataclasses.replace(local, renew_runtime=renew_runtime)


def over(
    kept: Stores, settings: Settings, wake_runtime: Callable[[], Awaitable[None]]
) -> LocalApplication:
    """The application over open stores."""
    return LocalApplication(
        settings=settings,
        clock=SystemClock(),
        store=kept.runs,
        schedule_store=kept.schedules,
        logs=kept.logs,
        series=kept.series,
        script_store=kept.scripts,
        engines=engines.capabilities(settings),
        wake_runtime=wake_runtime,
        open_datasets=functools.cache(functools.partial(_datasets, settings)),
    )


def _datasets(settings: Settings) -> DatasetCache:
    # Here and not above: only a few commands look at datasets.
    from anubis.bootstrap import datasets

    return datasets.cache(settings)


def make_home(settings: Settings) -> None:
    """Only its owner may look inside: plans hold environments. A home that somebody made more
    open stays so, but what we keep in it is not.
    """
    try:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (settings.runs, settings.logs, settings.series):
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreUnusable(
            f"{settings.home} cannot be used as home ({error.strerror}); set ANUBIS_HOME"
        ) from error


def revival(settings: Settings) -> tuple[str, ...] | None:
    """How a background runtime is started; None: who leads by a Lease carries runs, nobody else."""
    return None if settings.leader_lease else RUNTIME


def seat(settings: Settings) -> Seat:
    """Where this home says who its runtime is."""
    return Seat(lock=settings.runtime_lock, pid=settings.runtime_pid, service=settings.service_file)


def runtime_environment(settings: Settings) -> dict[str, str]:
    """What a runtime started now should see: our environment, and this very home."""
    return {**os.environ, "ANUBIS_HOME": str(settings.home)}
