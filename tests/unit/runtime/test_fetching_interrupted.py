"""Whoever may no longer bring things for a run stops at once, and says what was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from anubis.adapters.engine.fake import FakeEngine
from anubis.adapters.log_store.memory import MemoryLogStore
from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.adapters.series_store.memory import MemorySeriesStore
from anubis.domain import plan as plans
from anubis.domain.dataset import Progress, Report
from anubis.domain.errors import LeaseLost, SourceUnavailable
from anubis.domain.plan import Fetch, Limits, Plan, Unit
from anubis.domain.run import RunId, RunState, WorkerId
from anubis.runtime.carrying import Carrier, Workshop
from anubis.testing import builders
from anubis.testing.clock import NOON, ManualClock

URI = "http://example.org/data"
WORKER, OTHER = WorkerId("w"), WorkerId("other")


class Slow:
    """Brings something for ever, and complains if it is stopped."""

    def __init__(self, complaint: str = "") -> None:
        self._complaint = complaint
        self.begun = asyncio.Event()
        self.is_stopped = False

    async def bring(self, run_id: RunId, plan: Plan, report: Report) -> None:
        report(Progress(uri=URI, done_bytes=1, total_bytes=2))
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.is_stopped = True
            if self._complaint:
                raise SourceUnavailable(self._complaint) from None
            raise

    def placed(self, run_id: RunId, plan: Plan) -> Plan:
        return plan

    async def remove(self, run_id: RunId) -> None:
        """Nothing is there."""

    async def leftovers(self) -> Sequence[RunId]:
        return ()


async def a_carrier(bringing: Slow) -> tuple[Carrier, Workshop]:
    shop = Workshop(
        worker=WORKER,
        store=MemoryRunStore(),
        engines={"process": FakeEngine()},
        logs=MemoryLogStore(),
        series=MemorySeriesStore(),
        clock=ManualClock(),
        bringing=bringing,
    )
    unit = Unit(name="benchmark", command=("true",), environment={})
    plan = Plan(units=(unit,), deciding=unit.name, limits=Limits(), fetches=(Fetch(uri=URI),))
    await shop.store.add(builders.a_run(), builders.a_document(), plans.to_json(plan), "new")
    [run] = await shop.store.lease(
        WORKER, now=NOON, duration=timedelta(minutes=1), states=[RunState.SUBMITTED], limit=1
    )
    return Carrier(run, shop), shop


async def test_a_transfer_ends_when_another_worker_has_taken_the_run() -> None:
    """It would go on beside that of the other, with nobody left who could cancel it."""
    bringing = Slow()
    carrier, shop = await a_carrier(bringing)
    async with asyncio.timeout(30):
        carrying = asyncio.create_task(carrier.carry())
        await bringing.begun.wait()
        later = NOON + timedelta(hours=1)
        states = [RunState.FETCHING]
        assert await shop.store.lease(
            OTHER, now=later, duration=builders.HOUR, states=states, limit=1
        )
        await asyncio.wait([carrying])
        assert bringing.is_stopped
        with pytest.raises(LeaseLost):
            await carrying


async def test_a_run_that_is_canceled_is_so_whatever_its_transfers_say_then() -> None:
    bringing = Slow("the server broke off")
    carrier, shop = await a_carrier(bringing)
    async with asyncio.timeout(30):
        carrying = asyncio.create_task(carrier.carry())
        await bringing.begun.wait()
        await carrier.stop()
        await carrying
    run = await shop.store.get(carrier.run.id)
    assert run.state is RunState.CANCELED, run.outcome
