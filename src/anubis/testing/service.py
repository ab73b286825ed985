"""A service in memory, for tests of routes. Nothing carries its runs: they stay where they are."""

from __future__ import annotations

from pathlib import Path

from anubis.adapters.access_store.memory import MemoryAccessStore
from anubis.adapters.action_store.memory import MemoryActionStore
from anubis.adapters.engine.process.capabilities import PROCESS
from anubis.adapters.event_bus.in_process import InProcessBus
from anubis.adapters.log_store.memory import MemoryLogStore
from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.adapters.schedule_store.memory import MemoryScheduleStore
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.adapters.series_store.memory import MemorySeriesStore
from anubis.bootstrap.local import LocalApplication
from anubis.bootstrap.service import Service
from anubis.ports.clock import Clock
from anubis.runtime.broadcasting import Broadcaster
from anubis.runtime.caretaking import Caretaker
from anubis.runtime.supervising import Supervisor
from anubis.settings.model import Settings
from anubis.testing.datasets import PlayedCache


def a_service(home: Path, clock: Clock, *, requires_tokens: bool = False) -> Service:
    """A service of a home that need not exist. What a test wants otherwise, it replaces."""
    settings = Settings(home=home)
    cache = PlayedCache(clock)
    store = MemoryRunStore()
    scripts = MemoryScriptStore(clock)

    async def wake() -> None:
        broadcaster.wake()

    application = LocalApplication(
        settings=settings,
        clock=clock,
        store=store,
        schedule_store=MemoryScheduleStore(),
        logs=MemoryLogStore(),
        series=MemorySeriesStore(),
        script_store=scripts,
        engines={"process": PROCESS},
        wake_runtime=wake,
        open_datasets=lambda: cache,
    )
    broadcaster = Broadcaster(store, clock, InProcessBus(), reason=application.waiting)
    return Service(
        application=application,
        access=MemoryAccessStore(),
        actions=MemoryActionStore(),
        scripts=scripts,
        settings=settings,
        requires_tokens=requires_tokens,
        broadcaster=broadcaster,
        caretaker=Caretaker(application.open_datasets, Supervisor(), clock),
        started_at=clock.now(),
    )
