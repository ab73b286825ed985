"""A worker carries runs of several units to a true end, whatever happens to it meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from datetime import timedelta

from anubis.adapters.engine.fake import FakeEngine, Script
from anubis.adapters.event_bus.in_process import InProcessBus
from anubis.adapters.log_store.memory import MemoryLogStore
from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.adapters.series_store.memory import MemorySeriesStore
from anubis.domain import plan as plans
from anubis.domain.demand import Capacity
from anubis.domain.observation import EndCause, Stream
from anubis.domain.plan import Fetch, Limits, Plan, Probe, ProbeKind, Unit
from anubis.domain.run import Cause, Run, RunId, RunState, WorkerId
from anubis.ports.engine import Capabilities
from anubis.ports.log_store import LogQuery
from anubis.runtime import carrying
from anubis.runtime.carrying import Workshop
from anubis.runtime.supervising import Supervisor
from anubis.runtime.working import Worker
from anubis.testing import builders
from anubis.testing.clock import ManualClock

PROBE = Probe(kind=ProbeKind.HTTP, port=8080, path="/health")
SERVES = Script(output=((Stream.STDERR, b"listening\n"),), endless=True)
ASKS = Script(output=((Stream.STDOUT, b"latency=3\n"),))


def inference(**limits: timedelta) -> Plan:
    server = Unit(
        name="server",
        command=("serve",),
        environment={},
        is_service=True,
        readiness=PROBE,
        liveness=PROBE,
    )
    client = Unit(name="client", command=("ask",), environment={}, after=("server",))
    return Plan(units=(server, client), deciding="client", limits=Limits(**limits))  # type: ignore[arg-type] # durations


class Shop:
    """An installation in memory, whose worker can be killed and replaced."""

    def __init__(self, **scripts: Script) -> None:
        self.clock = ManualClock()
        self.store = MemoryRunStore()
        self.engine = FakeEngine(lambda _, unit: scripts[unit], now=self.clock.now)
        self.logs = MemoryLogStore()
        self.bus = InProcessBus()
        self.series = MemorySeriesStore()

    async def submit(self, plan: Plan) -> RunId:
        run = dataclasses.replace(builders.a_run(at=self.clock.now()), engine="fake")
        await self.store.add(run, builders.a_document(), plans.to_json(plan), "new")
        return run.id

    @contextlib.asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        workshop = Workshop(
            worker=WorkerId("w"),
            store=self.store,
            engines={"fake": self.engine},
            logs=self.logs,
            series=self.series,
            clock=self.clock,
        )
        capacities = {"fake": Capacity(slots=1, cpus=4, memory_bytes=2**30, gpus=0)}
        async with Supervisor() as supervisor:
            worker = Worker(
                workshop, self.bus, supervisor, capacities=capacities, lease=timedelta(hours=9)
            )
            await worker.begin()

            async def turn() -> None:
                while True:
                    await worker.turn()

            async def failed(error: Exception) -> None:
                raise AssertionError from error

            supervisor.start(turn, name="turns", failed=failed)
            yield

    async def reach(self, run_id: RunId, *states: RunState) -> Run:
        async with asyncio.timeout(20):
            while (run := await self.store.get(run_id)).state not in states:
                self.clock.advance(timedelta(milliseconds=100))
                self.bus.wake()
                await asyncio.sleep(0.01)
        return run

    async def end(self, run_id: RunId) -> Run:
        return await self.reach(run_id, *(state for state in RunState if state.is_terminal))

    async def units_started(self, run_id: RunId, *names: str) -> None:
        async with asyncio.timeout(20):
            while await self.engine.started(run_id) != set(names):
                self.bus.wake()
                await asyncio.sleep(0.01)

    async def said(self, run_id: RunId, unit: str) -> bytes:
        lines = self.logs.lines(run_id, LogQuery())
        return b"".join([line.text async for line in lines if line.unit == unit])

    async def messages(self, run_id: RunId) -> list[str]:
        return [event.message for event in await self.store.events(run_id)]


async def test_the_client_starts_when_the_server_is_ready_and_both_are_heard() -> None:
    shop = Shop(server=dataclasses.replace(SERVES, unready="connection refused"), client=ASKS)
    run_id = await shop.submit(inference())
    async with shop.worker():
        await shop.units_started(run_id, "server")
        await asyncio.sleep(0.1)
        assert await shop.engine.started(run_id) == {"server"}
        assert (await shop.store.get(run_id)).state is RunState.STARTING
        shop.engine.become(run_id, "server")
        run = await shop.end(run_id)
    assert run.state is RunState.SUCCEEDED, run.outcome
    assert run.outcome is not None
    assert run.outcome.reason == "client exited with code 0"
    assert await shop.said(run_id, "server") == b"listening\n"
    assert await shop.said(run_id, "client") == b"latency=3\n"
    assert "server is ready" in await shop.messages(run_id)
    assert not await shop.engine.leftovers()


async def test_a_server_that_dies_fails_the_run_with_its_own_last_lines() -> None:
    shop = Shop(server=SERVES, client=dataclasses.replace(ASKS, endless=True))
    run_id = await shop.submit(inference())
    async with shop.worker():
        await shop.reach(run_id, RunState.RUNNING)
        shop.engine.finish(run_id, 3, unit="server")
        run = await shop.end(run_id)
    assert run.outcome is not None
    assert run.outcome.state is RunState.FAILED
    assert (run.outcome.unit, run.outcome.exit_code) == ("server", 3)
    assert run.outcome.reason == "server exited with code 3, before client did"
    assert run.outcome.last_lines == ("listening",)


async def test_a_server_that_is_never_ready_fails_the_run_in_time() -> None:
    shop = Shop(server=dataclasses.replace(SERVES, unready="answered 503"), client=ASKS)
    run_id = await shop.submit(inference(readiness=timedelta(minutes=5)))
    async with shop.worker():
        await shop.units_started(run_id, "server")
        await asyncio.sleep(0.1)
        shop.clock.advance(timedelta(minutes=6))
        run = await shop.end(run_id)
    assert run.outcome is not None
    assert run.outcome.state is RunState.FAILED
    assert run.outcome.reason == (
        "server was not ready within limits.readiness = 5 min: answered 503"
    )
    assert run.outcome.last_lines == ("listening",)
    assert not await shop.engine.leftovers()


async def test_a_canceled_run_stops_all_its_units_and_starts_no_further_one() -> None:
    shop = Shop(server=dataclasses.replace(SERVES, unready="not yet"), client=ASKS)
    run_id = await shop.submit(inference())
    async with shop.worker():
        await shop.units_started(run_id, "server")
        await shop.store.request_cancel(run_id, now=shop.clock.now(), by="ann")
        run = await shop.end(run_id)
    assert run.state is RunState.CANCELED
    assert shop.engine.begun == [run_id]


async def test_a_worker_that_comes_after_a_crash_goes_on_with_the_same_units() -> None:
    shop = Shop(server=SERVES, client=dataclasses.replace(ASKS, endless=True))
    run_id = await shop.submit(inference())
    async with shop.worker():
        await shop.reach(run_id, RunState.RUNNING)
    async with shop.worker():
        await asyncio.sleep(0.1)
        assert (await shop.store.get(run_id)).state is RunState.RUNNING
        shop.engine.finish(run_id, unit="client")
        run = await shop.end(run_id)
    assert run.state is RunState.SUCCEEDED, run.outcome
    assert shop.engine.begun == [run_id, run_id]
    assert await shop.said(run_id, "client") == b"latency=3\n"
    assert (await shop.messages(run_id)).count("server is ready") == 1


async def test_a_fault_is_remembered_by_the_worker_that_comes_after_a_crash() -> None:
    stubborn = dataclasses.replace(SERVES, unready="answered 503")
    shop = Shop(server=stubborn, client=ASKS)
    run_id = await shop.submit(inference(readiness=timedelta(minutes=5)))

    async def deaf(*_: object, **__: object) -> None:
        """Lose the request, as if the worker had died before it was made."""

    stop = shop.engine.stop
    shop.engine.stop = deaf  # type: ignore[method-assign] # on purpose
    async with shop.worker():
        await shop.units_started(run_id, "server")
        await asyncio.sleep(0.1)
        shop.clock.advance(timedelta(minutes=6))
        async with asyncio.timeout(20):
            while not any("not ready within" in text for text in await shop.messages(run_id)):
                await asyncio.sleep(0.01)
    shop.engine.stop = stop  # type: ignore[method-assign] # as it was
    async with shop.worker():
        run = await shop.end(run_id)
    assert run.outcome is not None
    assert "not ready within limits.readiness" in run.outcome.reason
    texts = await shop.messages(run_id)
    assert sum(text.endswith("the run is being stopped") for text in texts) == 1


async def test_a_unit_that_was_lost_is_our_fault() -> None:
    shop = Shop(server=SERVES, client=dataclasses.replace(ASKS, endless=True))
    run_id = await shop.submit(inference())
    async with shop.worker():
        await shop.reach(run_id, RunState.RUNNING)
        shop.engine.lose(run_id, "the machine was restarted", unit="server")
        run = await shop.end(run_id)
    assert run.outcome is not None
    assert run.outcome.state is RunState.ERROR
    assert "the machine was restarted" in run.outcome.reason


async def test_a_server_that_stops_answering_fails_the_run() -> None:
    shop = Shop(server=SERVES, client=dataclasses.replace(ASKS, endless=True))
    run_id = await shop.submit(inference())
    async with shop.worker():
        await shop.reach(run_id, RunState.RUNNING)
        shop.engine.become(run_id, "server", silent="no answer within 1 s")
        run = await shop.end(run_id)
    assert run.outcome is not None
    assert run.outcome.state is RunState.FAILED
    assert run.outcome.reason == (
        "server no longer answers its liveness probe: no answer within 1 s"
    )


async def test_ranks_are_told_apart_and_a_failed_launcher_shows_what_they_said() -> None:
    ranks = b"[1,0]<stdout>:loss=1\n[1,1]<stdout>:loss=2\n[1,1]<stderr>:ValueError: no\n"
    words = ranks + b"mpirun: failed\n"
    speaks = Script(output=((Stream.STDOUT, words),), exit_code=1)
    shop = Shop(launcher=speaks)
    unit = Unit(name="launcher", command=("mpirun",), environment={}, tags_ranks=True)
    run_id = await shop.submit(Plan(units=(unit,), deciding="launcher", limits=Limits()))
    async with shop.worker():
        run = await shop.end(run_id)
    assert run.outcome is not None
    assert run.outcome.last_lines[-2:] == ("[1,1]<stderr>:ValueError: no", "mpirun: failed")
    assert await shop.said(run_id, "rank-0") == b"loss=1\n"
    assert await shop.said(run_id, "rank-1") == b"loss=2\nValueError: no\n"
    assert await shop.said(run_id, "launcher") == b"mpirun: failed\n"


async def test_what_a_unit_waits_for_is_told_once_and_is_the_reason_when_its_time_is_up() -> None:
    no_room = "no node has room for 2 nvidia.com/gpu"
    waits = Script(waits=("waiting for a node", no_room, no_room), never_begins=True)
    shop = Shop(server=SERVES, client=waits)
    short = timedelta(seconds=3)
    run_id = await shop.submit(inference(starting=short, readiness=short))
    async with shop.worker():
        run = await shop.end(run_id)
    told = [text for text in await shop.messages(run_id) if text.startswith("client: ")]
    assert told == ["client: waiting for a node", f"client: {no_room}"]
    assert run.state is RunState.ERROR
    assert run.outcome is not None
    assert run.outcome.reason.endswith(f"client: {no_room}")


async def test_a_unit_that_found_no_room_is_nobodys_fault() -> None:
    full = Script(cause=EndCause.NO_CAPACITY, message="no node has room", never_begins=False)
    shop = Shop(server=full, client=ASKS)
    run_id = await shop.submit(inference())
    async with shop.worker():
        run = await shop.end(run_id)
    assert run.outcome is not None
    assert (run.state, run.outcome.cause) == (RunState.ERROR, Cause.NO_CAPACITY)
    assert "server found no room within limits.capacity = 60 min: no node has room" in (
        run.outcome.reason
    )


async def test_an_engine_with_machines_has_time_to_find_one_and_to_bring_everything() -> None:
    shop = Shop(server=SERVES, client=ASKS)
    shop.engine.capabilities = dataclasses.replace(
        shop.engine.capabilities, brings=True, has_machines=True
    )
    plan = dataclasses.replace(
        inference(starting=timedelta(seconds=1), readiness=timedelta(seconds=10)),
        fetches=(Fetch(uri="https://example.org/x"),),
    )
    limits, run_id = plan.limits, await shop.submit(plan)
    async with shop.worker():
        run = await shop.end(run_id)
    assert run.state is RunState.SUCCEEDED, run.outcome  # though nobody here could bring anything
    assert "its data is fetched where it runs" in await shop.messages(run_id)
    one_unit = limits.capacity + limits.pulling + limits.fetching + limits.starting
    assert carrying_allows(plan) == 2 * one_unit + limits.readiness


def carrying_allows(plan: Plan) -> timedelta:
    able = Capabilities(
        name="fake",
        strategies=frozenset(),
        needs_image=True,
        honours_affinity=False,
        brings=True,
        has_machines=True,
    )
    return carrying.allowed(RunState.STARTING, plan, able)
