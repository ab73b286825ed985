"""The worker, with the memory adapters and the scripted engine: behaviour, not calls."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

import pytest

from anubis.adapters.engine.fake import FakeEngine, Script
from anubis.adapters.event_bus.in_process import InProcessBus
from anubis.adapters.log_store.memory import MemoryLogStore
from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.adapters.series_store.memory import MemorySeriesStore
from anubis.domain import identity
from anubis.domain import plan as plans
from anubis.domain.demand import Capacity
from anubis.domain.document import Document
from anubis.domain.metric import MetricDefinition
from anubis.domain.observation import EndCause, Stream
from anubis.domain.plan import Limits, Plan, Unit
from anubis.domain.run import Run, RunId, RunState, WorkerId
from anubis.ports.log_store import LogQuery
from anubis.ports.run_store import Step
from anubis.runtime.carrying import Workshop
from anubis.runtime.supervising import Supervisor
from anubis.runtime.working import Worker


class ShiftedClock:
    """Real time plus what the test adds: waits are real and short, deadlines are far."""

    def __init__(self) -> None:
        self.shift = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.shift

    def monotonic(self) -> float:
        return time.monotonic() + max(0.0, self.shift.total_seconds())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Shop:
    """A whole embedded installation in memory, and as many workers as a test wants."""

    def __init__(self, script: Script | Callable[[Plan, str], Script]) -> None:
        self.clock = ShiftedClock()
        self.store = MemoryRunStore()
        self.engine = FakeEngine(script, now=self.clock.now)
        self.logs = MemoryLogStore()
        self.bus = InProcessBus()
        self._series = MemorySeriesStore()

    async def submit(self, *, limits: Limits | None = None, engine: str = "fake") -> RunId:
        now = self.clock.now()
        document = Document(name="x.toml", directory="", content=b"x")
        plan = Plan(
            units=(Unit(name="benchmark", command=("true",), environment={}),),
            deciding="benchmark",
            limits=limits or Limits(),
            metrics=(MetricDefinition(name="loss", units="nats", pattern=r"loss=(\S+)"),),
        )
        run = Run(
            id=identity.run_id(now, secrets.token_bytes(8)),
            state=RunState.SUBMITTED,
            version=1,
            benchmark="x",
            engine=engine,
            descriptor_sha=document.sha,
            submitter="tests",
            submitted_at=now,
            state_since=now,
            deadline=now + timedelta(hours=1),
        )
        await self.store.add(run, document, plans.to_json(plan), "submitted")
        self.bus.wake()
        return run.id

    @contextlib.asynccontextmanager
    async def worker(
        self, *, slots: int = 1, name: str = "w", lease: timedelta = timedelta(seconds=30)
    ) -> AsyncIterator[Worker]:
        """A worker that turns until the end of the block, as in the runtime."""
        shop = Workshop(
            worker=WorkerId(name),
            store=self.store,
            engines={"fake": self.engine},
            logs=self.logs,
            series=self._series,
            clock=self.clock,
        )

        async def unexpected(error: Exception) -> None:
            raise AssertionError("the worker's loop died") from error

        async with Supervisor() as supervisor:
            capacities = {"fake": Capacity(slots=slots, cpus=4, memory_bytes=2**30, gpus=0)}
            worker = Worker(shop, self.bus, supervisor, capacities=capacities, lease=lease)
            await worker.begin()
            supervisor.start(worker.keep_leases, name="leases", failed=unexpected)

            async def turn() -> None:
                while True:
                    await worker.turn()

            supervisor.start(turn, name="turning", failed=unexpected)
            yield worker

    async def reach(self, run_id: RunId, *states: RunState) -> Run:
        """Wait until the run is in one of these states."""
        async with asyncio.timeout(10):
            while (run := await self.store.get(run_id)).state not in states:
                await asyncio.sleep(0.005)
        return run


ENDLESS = Script(endless=True)


async def test_a_run_goes_through_every_state_in_order() -> None:
    shop = Shop(Script(output=((Stream.STDOUT, b"loss=0.5\n"),)))
    run_id = await shop.submit()
    async with shop.worker():
        run = await shop.reach(run_id, RunState.SUCCEEDED)

    events = await shop.store.events(run_id)
    moves = [event.data["to"] for event in events if "to" in event.data]
    assert moves[-6:] == ["FETCHING", "QUEUED", "STARTING", "RUNNING", "FINISHING", "SUCCEEDED"]
    assert run.outcome is not None
    assert run.outcome.exit_code == 0
    assert run.lease is None
    assert [line.text async for line in shop.logs.lines(run_id, LogQuery())] == [b"loss=0.5\n"]
    assert [(s.key.name, s.last) for s in await shop.store.summaries(run_id)] == [("loss", 0.5)]
    assert not await shop.engine.leftovers()


@pytest.mark.parametrize(
    ("script", "state", "words"),
    [
        (Script(exit_code=3), RunState.FAILED, "exited with code 3"),
        (Script(exit_code=None, signal=9), RunState.FAILED, "signal 9, SIGKILL"),
        (
            Script(cause=EndCause.NOT_STARTED, message="no such program: foo"),
            RunState.FAILED,
            "could not be started: no such program: foo",
        ),
        (Script(cause=EndCause.LOST, message="the shim was killed"), RunState.ERROR, "was lost"),
        (Script(cause=EndCause.TIMED_OUT), RunState.FAILED, "limits.running"),
        (Script(cause=EndCause.OUTPUT_LIMIT), RunState.FAILED, "limits.output_size"),
    ],
)
async def test_every_end_has_its_state_and_a_reason(
    script: Script, state: RunState, words: str
) -> None:
    shop = Shop(script)
    run_id = await shop.submit()
    async with shop.worker():
        run = await shop.reach(run_id, *{RunState.SUCCEEDED, state})
    assert run.state is state
    assert run.outcome is not None
    assert words in run.outcome.reason


async def test_the_time_of_a_run_is_that_of_its_program() -> None:
    """Not that of storing its output, nor of a runtime that came an hour late."""
    shop = Shop(Script())
    then = shop.clock.now() - timedelta(hours=1)
    shop.engine = FakeEngine(Script(), now=lambda: then)
    run_id = await shop.submit()
    async with shop.worker():
        run = await shop.reach(run_id, RunState.SUCCEEDED)
    assert run.started_at == run.ended_at == then
    assert run.state_since > then
    assert run.elapsed(shop.clock.now()) == timedelta()


async def test_a_failed_run_shows_its_last_lines() -> None:
    shop = Shop(Script(output=((Stream.STDERR, b"out of memory\n"),), exit_code=1))
    run_id = await shop.submit()
    async with shop.worker():
        run = await shop.reach(run_id, RunState.FAILED)
    assert run.outcome is not None
    assert run.outcome.last_lines == ("out of memory",)


async def test_only_as_many_runs_as_slots_execute_at_once() -> None:
    shop = Shop(ENDLESS)
    first, second, third = [await shop.submit() for _ in range(3)]
    async with shop.worker(slots=2):
        await shop.reach(first, RunState.RUNNING)
        await shop.reach(second, RunState.RUNNING)
        await shop.reach(third, RunState.QUEUED)
        await shop.store.request_cancel(first, now=shop.clock.now(), by="tests")
        shop.bus.wake()
        await shop.reach(first, RunState.CANCELED)
        await shop.reach(third, RunState.RUNNING)


async def test_a_queued_run_is_canceled_without_starting() -> None:
    shop = Shop(ENDLESS)
    first, second = [await shop.submit() for _ in range(2)]
    async with shop.worker(slots=1):
        await shop.reach(second, RunState.QUEUED)
        await shop.store.request_cancel(second, now=shop.clock.now(), by="tests")
        shop.bus.wake()
        run = await shop.reach(second, RunState.CANCELED)
        assert shop.engine.begun == [first]
    assert run.started_at is None


async def test_a_run_that_waited_too_long_ends_with_the_limit_that_passed() -> None:
    shop = Shop(ENDLESS)
    await shop.submit()
    late = await shop.submit(limits=Limits(queued=timedelta(minutes=5)))
    async with shop.worker(slots=1):
        await shop.reach(late, RunState.QUEUED)
        shop.clock.shift = timedelta(minutes=6)
        shop.bus.wake()
        run = await shop.reach(late, RunState.ERROR)
    assert run.outcome is not None
    assert "limits.queued" in run.outcome.reason
    assert "5 min" in run.outcome.reason


class Deaf(FakeEngine):
    """An engine that has lost touch with its runs."""

    async def stop(self, run_id: RunId, **_: object) -> None:
        """Hear nothing."""


async def test_an_engine_that_never_ends_a_run_does_not_hang_it() -> None:
    shop = Shop(ENDLESS)
    shop.engine = Deaf(ENDLESS, now=shop.clock.now)
    run_id = await shop.submit(limits=Limits(running=timedelta(minutes=5)))
    async with shop.worker():
        await shop.reach(run_id, RunState.RUNNING)
        shop.clock.shift = timedelta(minutes=10)  # it is asked to stop, in vain
        shop.bus.wake()
        await asyncio.sleep(0.2)
        assert (await shop.store.get(run_id)).state is RunState.RUNNING
        shop.clock.shift = timedelta(minutes=20)
        shop.bus.wake()
        run = await shop.reach(run_id, RunState.ERROR)
    assert run.outcome is not None
    assert "limits.running" in run.outcome.reason


async def test_an_unknown_engine_is_an_error_that_names_the_known_ones() -> None:
    shop = Shop(Script())
    run_id = await shop.submit(engine="docker")
    async with shop.worker():
        run = await shop.reach(run_id, RunState.ERROR)
    assert run.outcome is not None
    assert "'docker'" in run.outcome.reason
    assert "fake" in run.outcome.reason


async def test_a_worker_that_comes_after_a_crash_takes_up_what_is_under_way() -> None:
    shop = Shop(ENDLESS)
    run_id = await shop.submit()
    async with shop.worker(name="same"):
        await shop.reach(run_id, RunState.RUNNING)
    # The first worker is gone without a word; its lease has not ended.
    async with shop.worker(name="same"):
        await shop.store.request_cancel(run_id, now=shop.clock.now(), by="tests")
        shop.bus.wake()
        await shop.reach(run_id, RunState.CANCELED)
    assert shop.engine.begun == [run_id]


async def test_another_worker_waits_for_the_lease_to_end() -> None:
    shop = Shop(ENDLESS)
    run_id = await shop.submit()
    async with shop.worker(name="first"):
        await shop.reach(run_id, RunState.RUNNING)
    async with shop.worker(name="second") as second:
        await asyncio.sleep(0.05)
        assert second.is_idle
    shop.clock.shift = timedelta(minutes=1)
    async with shop.worker(name="second") as second:
        assert not second.is_idle
    assert shop.engine.begun == [run_id]


QUICK = timedelta(milliseconds=90)
"""A lease short enough to end within a test."""


async def test_an_engine_that_is_away_is_tried_again_later() -> None:
    shop = Shop(Script())
    shop.engine.unavailable = True
    run_id = await shop.submit()
    async with shop.worker(lease=QUICK):
        await shop.reach(run_id, RunState.STARTING)
        await asyncio.sleep(0.05)
        shop.engine.unavailable = False
        await shop.reach(run_id, RunState.SUCCEEDED)
    assert shop.engine.begun == [run_id]


async def test_a_run_that_an_absent_engine_never_got_can_be_canceled() -> None:
    shop = Shop(Script())
    shop.engine.unavailable = True
    run_id = await shop.submit()
    async with shop.worker(lease=QUICK):
        await shop.reach(run_id, RunState.STARTING)
        await shop.store.request_cancel(run_id, now=shop.clock.now(), by="tests")
        shop.bus.wake()
        run = await shop.reach(run_id, RunState.CANCELED)
    assert run.outcome is not None
    assert run.outcome.reason == "canceled before it began"
    assert shop.engine.begun == []


async def test_an_engine_that_stays_away_does_not_keep_a_run_starting_for_ever() -> None:
    shop = Shop(Script())
    shop.engine.unavailable = True
    run_id = await shop.submit(limits=Limits(starting=timedelta(minutes=5)))
    async with shop.worker(lease=QUICK):
        await shop.reach(run_id, RunState.STARTING)
        await asyncio.sleep(0.3)  # it is tried several times, and told once
        shop.clock.shift = timedelta(minutes=6)
        run = await shop.reach(run_id, RunState.ERROR)
    assert run.outcome is not None
    assert "limits.starting" in run.outcome.reason
    assert "the fake engine was told to be unavailable" in run.outcome.reason
    messages = [event.message for event in await shop.store.events(run_id)]
    assert messages.count("the fake engine was told to be unavailable") == 1


async def test_a_clock_that_is_set_back_does_not_delay_a_cancel() -> None:
    shop = Shop(ENDLESS)
    run_id = await shop.submit()
    async with shop.worker():
        await shop.reach(run_id, RunState.RUNNING)
        shop.clock.shift = timedelta(hours=-1)
        await shop.store.request_cancel(run_id, now=shop.clock.now(), by="tests")
        shop.bus.wake()
        await shop.reach(run_id, RunState.CANCELED)


async def test_a_run_past_its_time_is_asked_to_stop_and_keeps_its_output() -> None:
    """The machine may have slept: what the program did until then is not thrown away."""
    shop = Shop(Script(output=((Stream.STDOUT, b"loss=0.5\n"),), endless=True))
    run_id = await shop.submit(limits=Limits(running=timedelta(minutes=5)))
    async with shop.worker():
        await shop.reach(run_id, RunState.RUNNING)
        shop.clock.shift = timedelta(hours=1)
        run = await shop.reach(run_id, RunState.FAILED)
    assert run.outcome is not None
    assert "limits.running" in run.outcome.reason
    assert [s.last for s in await shop.store.summaries(run_id)] == [0.5]


class SlowToForget(FakeEngine):
    """An engine that takes its time to remove a run, as one with much output does."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.may_forget = asyncio.Event()

    async def remove(self, run_id: RunId) -> None:
        await self.may_forget.wait()
        await super().remove(run_id)


async def test_a_run_purged_at_the_moment_it_ends_disturbs_nobody() -> None:
    shop = Shop(Script())
    shop.engine = engine = SlowToForget(Script())
    first = await shop.submit()
    async with shop.worker(slots=2):
        await shop.reach(first, RunState.SUCCEEDED)
        await shop.store.delete(first)
        shop.bus.wake()
        await asyncio.sleep(0.1)
        engine.may_forget.set()
        second = await shop.submit()
        await shop.reach(second, RunState.SUCCEEDED)


class SlowToAnswer(MemoryRunStore):
    """A store whose answer that a run is queued comes late, as that of a busy disk may."""

    async def apply(self, worker: WorkerId, step: Step) -> Run:
        run = await super().apply(worker, step)
        if run.state is RunState.QUEUED:
            await asyncio.sleep(0.5)
        return run


async def test_a_run_that_gets_a_slot_while_it_is_being_queued_is_not_forgotten() -> None:
    """Its lease is given back and taken again before the task that queued it has heard of it."""
    scripts = iter([ENDLESS, Script()])
    shop = Shop(lambda _, __: next(scripts))
    shop.store = SlowToAnswer()
    first, second = await shop.submit(), await shop.submit()
    async with shop.worker(slots=1):
        await shop.reach(second, RunState.QUEUED)
        await shop.store.request_cancel(first, now=shop.clock.now(), by="tests")
        shop.bus.wake()
        await shop.reach(first, RunState.CANCELED)
        await shop.reach(second, RunState.SUCCEEDED)


class FarEngine(FakeEngine):
    """Needs long to remove a run, as a cluster does."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.may_remove = asyncio.Event()
        self.removing: list[RunId] = []
        self.given_up: list[RunId] = []

    async def remove(self, run_id: RunId) -> None:
        self.removing.append(run_id)
        try:
            await self.may_remove.wait()
        except asyncio.CancelledError:
            self.given_up.append(run_id)
            raise
        await super().remove(run_id)


async def test_a_slow_removal_is_not_given_up_when_leases_are_renewed() -> None:
    """A run that has ended has no lease to lose."""
    shop = Shop(Script())
    shop.engine = engine = FarEngine(Script())
    run_id = await shop.submit()
    async with shop.worker(lease=timedelta(seconds=0.15)) as worker:
        await shop.reach(run_id, RunState.SUCCEEDED)
        await asyncio.sleep(0.5)
        assert engine.removing == [run_id]
        assert engine.given_up == []
        engine.may_remove.set()
        async with asyncio.timeout(10):
            while not worker.is_idle:
                await asyncio.sleep(0.005)
        assert not await engine.leftovers()


async def test_leases_are_kept_while_the_traces_of_many_runs_are_being_removed() -> None:
    """And what an earlier life left holds up no start."""
    shop = Shop(Script())
    shop.engine = engine = FarEngine(Script())
    old = [await shop.submit() for _ in range(3)]
    async with shop.worker(slots=3):
        for run_id in old:
            await shop.reach(run_id, RunState.SUCCEEDED)
    engine.removing.clear()
    engine._script = ENDLESS
    new = await shop.submit()
    async with shop.worker(lease=timedelta(seconds=0.15)):
        await shop.reach(new, RunState.RUNNING)
        first = (await shop.store.get(new)).lease
        async with asyncio.timeout(10):
            while set(engine.removing) != set(old):
                await asyncio.sleep(0.005)
            while (await shop.store.get(new)).lease == first:
                await asyncio.sleep(0.005)
        await shop.store.request_cancel(new, now=shop.clock.now(), by="tests")
        engine.may_remove.set()
        await shop.reach(new, RunState.CANCELED)
        async with asyncio.timeout(10):
            while set(old) & set(await engine.leftovers()):
                await asyncio.sleep(0.005)
