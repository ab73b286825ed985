"""The service of one home: the runtime, and what its HTTP routes work with.

Service ── LocalApplication ── Stores
        ├─ SqliteAccessStore, SqliteActionStore
        ├─ Broadcaster ──► watchers
        ├─ Caretaker ──► datasets, brought and verified
        ├─ Carrying ── Worker, ProcessEngine
        └─ Housekeeper ──► what is old goes
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import signal
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta

import structlog

from anubis.adapters.access_store.sqlite import SqliteAccessStore
from anubis.adapters.action_store.sqlite import SqliteActionStore
from anubis.adapters.clock.system import SystemClock
from anubis.adapters.event_bus.in_process import InProcessBus
from anubis.bootstrap import carrying, embedded, stores
from anubis.bootstrap.carrying import Carrying
from anubis.bootstrap.local import LocalApplication
from anubis.bootstrap.stores import Stores
from anubis.domain.errors import UserError
from anubis.ports.access_store import AccessStore
from anubis.ports.action_store import ActionStore
from anubis.ports.script_store import ScriptStore
from anubis.runtime import serving, succession
from anubis.runtime.broadcasting import Broadcaster
from anubis.runtime.caretaking import Caretaker
from anubis.runtime.housekeeping import Housekeeper, Keeping
from anubis.runtime.pulse import Pulse
from anubis.settings.model import Settings
from anubis.stages.access import tokens


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """One service, open. Every route works with this and nothing else."""

    application: LocalApplication
    access: AccessStore
    actions: ActionStore
    scripts: ScriptStore
    settings: Settings
    requires_tokens: bool  #: False: whoever reaches us on loopback may do everything
    broadcaster: Broadcaster  #: tells watchers that the store has news
    caretaker: Caretaker  #: fetches and verifies datasets for those who ask
    started_at: datetime
    pulse: Pulse = dataclasses.field(default_factory=Pulse)
    troubles: dict[str, str] = dataclasses.field(default_factory=dict)
    """Which checks failed when they were last asked for, and with which words."""
    leases: Callable[[], int] = lambda: 0  #: how many runs we hold


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    """Where a service lets people in."""

    address: str  #: as clients write it, ``http://127.0.0.1:8080``
    requires_tokens: bool


@contextlib.asynccontextmanager
async def opened(settings: Settings, door: Door) -> AsyncIterator[tuple[Service, Carrying]]:
    """Be the runtime of a home, with all that routes need. SIGTERM and SIGINT set ``stop``.

    Raises UserError if tokens are required and no admin has one, unless a Lease says that we are in
    a pod; NotPossible if another service is the runtime of this home.
    """
    embedded.make_home(settings)
    clock = SystemClock()
    seat = embedded.seat(settings)
    async with contextlib.AsyncExitStack() as stack:
        kept = await stack.enter_async_context(stores.opened(settings))
        access = SqliteAccessStore(kept.database)
        if door.requires_tokens and not await tokens.has_admin(access, clock):
            _miss_admin(settings, door)
        lock = await succession.take(seat, clock)
        stack.callback(lock.release)
        stack.enter_context(succession.announced(seat, door.address))
        carried = await stack.enter_async_context(carrying.opened(settings, kept))
        _leave_on_signals(carried)
        service = _service(settings, kept, carried, door)
        _start(service, carried, kept)
        yield service, carried


_NO_ADMIN = """\
{address} requires tokens, and no admin has one. Make one first; its secret is shown once:
  anubis token create YOUR_NAME --role admin"""


def _miss_admin(settings: Settings, door: Door) -> None:
    """Raise UserError; but not in a pod, where tokens can only be made once we are there."""
    words = _NO_ADMIN.format(address=door.address)
    if not settings.leader_lease:
        raise UserError(words)
    structlog.get_logger("anubis.api").warning("no_admin", advice=words)


def _service(settings: Settings, kept: Stores, carried: Carrying, door: Door) -> Service:
    bus = InProcessBus()

    async def wake() -> None:
        carried.bus.wake()
        broadcaster.wake()

    application = embedded.over(kept, settings, wake)
    broadcaster = Broadcaster(
        kept.runs,
        carried.clock,
        bus,
        most=settings.max_streams,
        # Where no tokens are in force, all may be one user.
        most_each=max(1, settings.max_streams // 2) if door.requires_tokens else None,
        reason=application.waiting,
    )
    return Service(
        application=application,
        access=SqliteAccessStore(kept.database),
        actions=SqliteActionStore(kept.database),
        scripts=kept.scripts,
        settings=settings,
        requires_tokens=door.requires_tokens,
        broadcaster=broadcaster,
        caretaker=Caretaker(application.open_datasets, carried.supervisor, carried.clock),
        started_at=carried.clock.now(),
        leases=lambda: carried.worker.leases,
    )


def _start(service: Service, carried: Carrying, kept: Stores) -> None:
    """Start the tasks that a service cannot do without."""

    async def turn() -> None:
        await serving.serve(
            carried.worker,
            kept.has_work,
            carried.clock,
            stop=carried.stop,
            idle_exit=None,
            pulse=service.pulse,
        )

    carried.start(turn, name="worker")
    carried.start(service.broadcaster.run, name="broadcasting")
    carried.start(lambda: service.pulse.listen(carried.clock), name="pulse")
    carried.start(_housekeeper(service, carried).run, name="housekeeping")


def _housekeeper(service: Service, carried: Carrying) -> Housekeeper:
    keeping = Keeping(
        audit=timedelta(days=service.settings.audit_days),
        scripts=timedelta(days=service.settings.scripts_days),
    )
    return Housekeeper(service.access, service.application.scripts, carried.clock, keeping)


def _leave_on_signals(carried: Carrying) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, carried.leave)
