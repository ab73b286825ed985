"""The worker: claim runs that need somebody, carry each in a task of its own, keep the leases.

Three rhythms. *Claiming* happens at every wake-up, and a run that ends is one. *Caring* for the
runs in hand (cancel requests, deadlines) happens once a second, and soon after a wake-up.
*Renewing* the leases happens three times per lease.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

import structlog

from anubis.domain.demand import Capacity
from anubis.domain.errors import LeaseLost, NotPossible, RunNotFound, TemporaryError
from anubis.domain.run import BEFORE_START, UNDER_WAY, Run, RunId, RunState
from anubis.ports.engine import Engine
from anubis.ports.event_bus import EventBus
from anubis.runtime.admitting import Admission, Admitted
from anubis.runtime.allotting import Allotments
from anubis.runtime.bringing import Bringing
from anubis.runtime.carrying import Carrier, Workshop
from anubis.runtime.supervising import Supervisor, Work

NEW = frozenset({RunState.SUBMITTED, RunState.FETCHING})

CARE_EVERY = 1.0
"""Seconds. A cancel request comes with a wake-up; this is for a lost one, and for deadlines."""

CARE_PAUSE = 0.05
"""Seconds. Hundreds of submissions a second wake us as often; cancel requests can wait so long."""

ENQUEUE_EVERY = 0.5
"""Seconds. Runs that find no slot are brought to QUEUED this often. One that gets a slot sooner
goes there straight from SUBMITTED and saves two steps: of many short runs, a third of the work."""

BATCH = 200
"""Runs brought to the queue or settled in one go."""

SWEPT_AT_ONCE = 8
"""Runs whose last traces are removed at the same time: a cluster needs seconds for each."""


class Worker:
    """Carries as many runs as the engines have room for, and what a crash left under way."""

    def __init__(
        self,
        workshop: Workshop,
        bus: EventBus,
        supervisor: Supervisor,
        *,
        capacities: Mapping[str, Capacity],
        lease: timedelta,
    ) -> None:
        self._shop = workshop
        self._bus = bus
        self._supervisor = supervisor
        self._admission = Admission(workshop.store, workshop.clock, capacities)
        self._allotments = Allotments(workshop.store, capacities)
        self._lease = lease
        self._in_hand: dict[RunId, tuple[Carrier, asyncio.Task[None]]] = {}
        self._carried: set[RunId] = set()  # those in hand that take up a slot
        self._sweeping: asyncio.Task[None] | None = None
        self._cared_at = workshop.clock.monotonic()
        self._care_at = self._cared_at + CARE_EVERY
        self._enqueue_at = self._cared_at
        self._log = structlog.get_logger("anubis.runtime")

    @property
    def is_idle(self) -> bool:
        """Whether no run is in hand."""
        return not self._in_hand

    @property
    def leases(self) -> int:
        """How many runs are in hand."""
        return len(self._in_hand)

    async def begin(self) -> None:
        """Take back what an earlier life of this worker held, and take up what is under way."""
        await self._shop.store.release_all(self._shop.worker)
        await self._admission.begin()
        self._start_sweep()
        await self._reclaim()

    async def turn(self) -> None:
        """One round: claim, wait for news for a second at most, care if it is time."""
        await self._claim()
        now = self._shop.clock.monotonic()
        woken = await self._bus.wait(max(0.0, min(self._care_at, self._admission.due) - now))
        now = self._shop.clock.monotonic()
        if woken:
            self._care_at = min(self._care_at, max(now, self._cared_at + CARE_PAUSE))
        if self._care_at <= now:
            self._cared_at, self._care_at = now, now + CARE_EVERY
            await self._care_for_all()

    async def keep_leases(self) -> None:
        """Renew for as long as this runs; drop what another worker has taken."""
        while True:
            await self._shop.clock.sleep(self._lease.total_seconds() / 3)
            with contextlib.suppress(TemporaryError):
                await self._renew()
                await self._reclaim()
            with contextlib.suppress(TemporaryError, TimeoutError):
                # An engine that is far away, or has much to remove, must not cost us our leases.
                async with asyncio.timeout(self._lease.total_seconds() / 3):
                    await self._sweep()

    async def _claim(self) -> None:
        for run in await self._take(BEFORE_START, BATCH, urgent_only=True):
            self._settle(run)
        some_wait = await self._admit()
        if some_wait and self._shop.clock.monotonic() >= self._enqueue_at:
            self._enqueue_at = self._shop.clock.monotonic() + ENQUEUE_EVERY
            for run in await self._take(NEW, BATCH):
                carrier = Carrier(run, self._shop)
                self._start(carrier, carrier.enqueue, name="enqueue")

    async def _admit(self) -> bool:
        """Start what the queue lets pass. Whether some runs may have to wait."""
        while True:
            carried = [self._in_hand[run_id][0].run for run_id in self._carried]
            admitted = await self._admission.choose(carried)
            if not await self._start_chosen(admitted) or not admitted.is_partial:
                return admitted.leaves_some

    async def _start_chosen(self, admitted: Admitted) -> bool:
        """Carry the chosen runs that are still to be had. Whether there was one."""
        if not (ids := [run.id for run in admitted.chosen]):
            return False
        taken = await self._take(BEFORE_START, len(ids), among=ids)
        under_way = list(admitted.under_way)
        for run in taken:
            gpus = await self._allotments.give(run, under_way)
            under_way.append(run)
            self._carry(run, gpus)
        return bool(taken)

    async def _reclaim(self) -> None:
        """Runs under way whose worker went silent are ours now, whatever the slots say.

        Those that we ourselves let go because the store or the engine was away come back here too;
        when their time is up, they end instead of being tried again.
        """
        now = self._shop.clock.now()
        for run in await self._take(UNDER_WAY, BATCH):
            if run.state is not RunState.RUNNING and run.deadline <= now:
                self._settle(run)
            else:
                self._carry(run)

    async def _take(
        self,
        states: frozenset[RunState],
        limit: int,
        *,
        urgent_only: bool = False,
        among: Collection[RunId] | None = None,
    ) -> list[Run]:
        runs = await self._shop.store.lease(
            self._shop.worker,
            now=self._shop.clock.now(),
            duration=self._lease,
            states=states,
            limit=limit,
            urgent_only=urgent_only,
            among=among,
        )
        return [run for run in runs if await self._is_free(run.id)]

    async def _is_free(self, run_id: RunId) -> bool:
        """Whether we may start something with a run that the store has just given us.

        One that we carry was only lent to us again: its lease had ended before we renewed it. One
        that we are bringing to the queue is as good as there; nobody else would take it up.
        """
        if run_id in self._carried:
            return False
        if entry := self._in_hand.get(run_id):
            await asyncio.wait([entry[1]])
        return True

    def _carry(self, run: Run, gpus: Sequence[int] = ()) -> None:
        carrier = Carrier(run, self._shop, gpus)
        self._carried.add(run.id)
        self._start(carrier, carrier.carry, name="carry")

    def _settle(self, run: Run) -> None:
        """End a run that waits and that somebody canceled, or that waited too long."""
        carrier = Carrier(run, self._shop)
        canceled = run.cancel_requested_at is not None and run.state in BEFORE_START
        self._start(carrier, carrier.carry if canceled else carrier.expire, name="settle")

    def _start(self, carrier: Carrier, work: Work, *, name: str) -> None:
        """Do the work in a task of its own, and let the run go at the end."""
        run_id = carrier.run.id

        async def failed(error: Exception) -> None:
            if not isinstance(error, LeaseLost | TemporaryError):
                await self._give_up(carrier, error)

        task = self._supervisor.start(work, name=f"{name}-{run_id}", failed=failed)
        self._in_hand[run_id] = (carrier, task)
        task.add_done_callback(lambda done: self._let_go(run_id, done))

    def _let_go(self, run_id: RunId, task: asyncio.Task[None]) -> None:
        if (entry := self._in_hand.get(run_id)) and entry[1] is task:
            del self._in_hand[run_id]
            self._carried.discard(run_id)
            self._admission.ended(entry[0].run)
            self._bus.wake()

    async def _give_up(self, carrier: Carrier, error: Exception) -> None:
        reason = f"Anubis could not carry on with this run: {str(error) or type(error).__name__}"
        with contextlib.suppress(LeaseLost):
            await carrier.give_up(reason)

    async def _care_for_all(self) -> None:
        """See to those of our runs that need it: it costs the same however many we have."""
        try:
            urgent = await self._shop.store.urgent(self._shop.worker, now=self._shop.clock.now())
        except TemporaryError as error:
            self._log.warning("care_failed", error=str(error))
            return
        for run in urgent:
            if entry := self._in_hand.get(run.id):
                await self._care(run, *entry)

    async def _care(self, run: Run, carrier: Carrier, task: asyncio.Task[None]) -> None:
        """See to one run in hand: was it canceled, is its time up? Trouble with one is its own."""
        try:
            if run.cancel_requested_at is not None and not run.state.is_terminal:
                await carrier.stop()
            if carrier.is_overdue(run):
                task.cancel()
                await asyncio.wait([task])
                self._start(carrier, carrier.expire, name="expire")
            elif run.state is RunState.RUNNING and run.deadline <= self._shop.clock.now():
                await carrier.stop_late()
        except TemporaryError as error:
            self._log.warning("care_failed", run=carrier.run.id, error=str(error))

    async def _renew(self) -> None:
        held = list(self._in_hand)
        if not held:
            return
        now = self._shop.clock.now()
        kept = await self._shop.store.renew(self._shop.worker, held, now=now, duration=self._lease)
        for run_id in set(held) - kept:
            entry = self._in_hand.get(run_id)
            # One that has ended needs none: what is left of it is being removed.
            if entry is not None and not entry[0].run.state.is_terminal:
                self._log.warning("lease_lost", run=run_id)
                entry[1].cancel()

    def _start_sweep(self) -> None:
        """In a task of its own: engines far away need minutes for many runs, and leases do not
        wait.
        """

        async def failed(_: Exception) -> None:
            """The log has it, and the next one comes."""

        if self._sweeping is None or self._sweeping.done():
            self._sweeping = self._supervisor.start(self._sweep, name="sweep", failed=failed)

    async def _sweep(self) -> None:
        """Remove what is still kept of runs that have ended or were purged."""
        keepers: list[Engine | Bringing] = [*self._shop.engines.values(), self._shop.bringing]
        for keeper in keepers:
            with contextlib.suppress(TemporaryError):  # an engine that does not answer: next time
                await self._sweep_of(keeper, await keeper.leftovers())

    async def _sweep_of(self, keeper: Engine | Bringing, run_ids: Sequence[RunId]) -> None:
        places = asyncio.Semaphore(SWEPT_AT_ONCE)

        async def remove(run_id: RunId) -> None:
            async with places:
                await self._remove(keeper, run_id)

        async with asyncio.TaskGroup() as group:
            for run_id in run_ids:
                group.create_task(remove(run_id))

    async def _remove(self, keeper: Engine | Bringing, run_id: RunId) -> None:
        with contextlib.suppress(NotPossible, TemporaryError):  # still dying: next time
            if run_id not in self._in_hand and await self._has_ended(run_id):
                await keeper.remove(run_id)

    async def _has_ended(self, run_id: RunId) -> bool:
        try:
            return (await self._shop.store.get(run_id)).state.is_terminal
        except RunNotFound:
            return True
