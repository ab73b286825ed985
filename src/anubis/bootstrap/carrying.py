"""What carries the runs of a home, whether in the background or inside a service.

Carrying ── Worker ── Stores
         ├─ Firer ──► a run for each firing of a schedule
         ├─ Engines ──► one guardian process per unit
         └─ PipeReceiver ◄── commands
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
from collections.abc import AsyncIterator

from anubis.adapters.clock.system import SystemClock
from anubis.adapters.event_bus.pipe import PipeReceiver
from anubis.adapters.ssh_keys import openssh
from anubis.bootstrap import capacity, datasets, embedded, firing
from anubis.bootstrap import engines as all_engines
from anubis.bootstrap.engines import Engines
from anubis.bootstrap.stores import Stores
from anubis.domain.run import WorkerId
from anubis.runtime.bringing import Bringer
from anubis.runtime.carrying import Workshop
from anubis.runtime.supervising import Supervisor, Work
from anubis.runtime.working import Worker
from anubis.settings.model import Settings


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Carrying:
    """A worker with its engines, ready to turn. ``stop`` is set when it is time to leave."""

    worker: Worker
    engines: Engines
    bus: PipeReceiver
    clock: SystemClock
    stop: asyncio.Event
    supervisor: Supervisor
    defects: list[Exception] = dataclasses.field(default_factory=list)

    def leave(self) -> None:
        """End the turn in progress; runs go on without us and are taken up later."""
        self.stop.set()
        self.bus.wake()

    async def wake(self) -> None:
        """Have the worker look for news."""
        self.bus.wake()

    def start(self, work: Work, *, name: str) -> asyncio.Task[None]:
        """Start a task that we cannot do without: if it dies, we leave, and say what of."""

        async def failed(error: Exception) -> None:
            self.defects.append(error)
            self.leave()

        return self.supervisor.start(work, name=name, failed=failed)


@contextlib.asynccontextmanager
async def opened(settings: Settings, stores: Stores) -> AsyncIterator[Carrying]:
    """Be the runtime of this home, whose lock must be held.

    Raises what a task that we cannot do without died of; whoever guards our runs then starts
    another runtime.
    """
    async with contextlib.AsyncExitStack() as stack:
        bus = PipeReceiver.open(settings.wake, stack)
        engines = await stack.enter_async_context(
            all_engines.opened(settings, embedded.revival(settings), stores.scripts)
        )
        workshop = Workshop(
            worker=_name(settings),
            store=stores.runs,
            engines=engines.by_name,
            logs=stores.logs,
            series=stores.series,
            clock=SystemClock(),
            bringing=Bringer(
                settings.places, stores.scripts, datasets.cache(settings), openssh.make
            ),
        )
        supervisor = await stack.enter_async_context(Supervisor())
        worker = Worker(
            workshop,
            bus,
            supervisor,
            capacities=capacity.capacities(settings),
            lease=settings.lease,
        )
        carrying = Carrying(
            worker=worker,
            engines=engines,
            bus=bus,
            clock=SystemClock(),
            stop=asyncio.Event(),
            supervisor=supervisor,
        )
        carrying.start(worker.keep_leases, name="leases")
        application = embedded.over(stores, settings, carrying.wake)
        # Whoever waits for the next firing must not be killed unseen.
        firer = firing.firer(application, supervisor, expecting=engines.process.rouse)
        carrying.start(firer.keep_firing, name="schedules")
        yield carrying
        if carrying.defects:
            raise carrying.defects[0]


def _name(settings: Settings) -> WorkerId:
    """The lock, or the Lease, makes us the only one of this name: what an earlier life held, or who
    led before us in another pod, is ours.
    """
    if settings.leader_lease:
        return WorkerId(f"leader@{settings.leader_lease}")
    return WorkerId(f"embedded@{socket.gethostname()}")
