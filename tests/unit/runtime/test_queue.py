"""The worker as the door of the queue: which runs start, beside what, and with which GPUs."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime, timedelta

import pytest

from anubis.adapters.engine.fake import FakeEngine, Script
from anubis.adapters.event_bus.in_process import InProcessBus
from anubis.adapters.log_store.memory import MemoryLogStore
from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.adapters.series_store.memory import MemorySeriesStore
from anubis.domain import plan as plans
from anubis.domain.demand import Capacity, Demand
from anubis.domain.event import EventKind
from anubis.domain.plan import SOLE, Limits, Plan, Unit
from anubis.domain.run import Run, RunId, RunState, WorkerId
from anubis.runtime.carrying import Workshop
from anubis.runtime.supervising import Supervisor
from anubis.runtime.working import Worker
from anubis.testing import builders
from anubis.testing.clock import ManualClock

LEASE = timedelta(hours=100)
WIDE = Capacity(slots=4, cpus=4, memory_bytes=2**30, gpus=4)
ALONE = Demand(exclusive=True)
ALL = Demand(cpus=4)
ENDLESS = Script(endless=True)


class Watched(FakeEngine):
    """Remembers the plans of what it was asked to start."""

    def __init__(self, clock: ManualClock, script: Script = ENDLESS) -> None:
        super().__init__(script, now=clock.now)
        self.plans: dict[RunId, Plan] = {}

    async def start(self, run_id: RunId, plan: Plan, unit: str = SOLE) -> None:
        self.plans[run_id] = plan
        await super().start(run_id, plan, unit)

    def gpus_of(self, run_id: RunId) -> str | None:
        return self.plans[run_id].units[0].environment.get("CUDA_VISIBLE_DEVICES")


class Queue:
    """An installation in memory whose time stands still until a test moves it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryRunStore()
        self.engine = Watched(self.clock)
        self.bus = InProcessBus()
        self._numbers = iter(range(1000))

    async def submit(
        self,
        *,
        user: str = "ann",
        benchmark: str = "resnet",
        priority: int = 0,
        demand: Demand | None = None,
        engine: str = "fake",
        environment: dict[str, str] | None = None,
    ) -> RunId:
        document = builders.a_document()
        run = dataclasses.replace(
            builders.a_run(next(self._numbers), benchmark=benchmark),
            submitter=user,
            priority=priority,
            demand=demand or Demand(),
            engine=engine,
        )
        unit = Unit(name="benchmark", command=("true",), environment=environment or {})
        plan = Plan(units=(unit,), deciding="benchmark", limits=Limits())
        await self.store.add(run, document, plans.to_json(plan), "submitted")
        return run.id

    @contextlib.asynccontextmanager
    async def worker(
        self, capacity: Capacity = WIDE, *, name: str = "w", turns: bool = True
    ) -> AsyncIterator[Worker]:
        shop = Workshop(
            worker=WorkerId(name),
            store=self.store,
            engines={"fake": self.engine},
            logs=MemoryLogStore(),
            series=MemorySeriesStore(),
            clock=self.clock,
        )
        async with Supervisor() as supervisor:
            capacities = {"fake": capacity}
            worker = Worker(shop, self.bus, supervisor, capacities=capacities, lease=LEASE)
            await worker.begin()
            if turns:
                await self.turn(worker)
            yield worker

    async def turn(self, worker: Worker) -> None:
        """Give the worker and its tasks all the turns they need; no time passes."""
        for _ in range(10):
            self.bus.wake()
            await worker.turn()
            for _ in range(20):
                await asyncio.sleep(0)

    async def finish(self, worker: Worker, *run_ids: RunId, after: timedelta = timedelta()) -> None:
        self.clock.advance(after)
        for run_id in run_ids:
            self.engine.finish(run_id)
        await self.turn(worker)

    async def states(self, *run_ids: RunId) -> list[RunState]:
        return [(await self.store.get(run_id)).state for run_id in run_ids]

    async def running(self) -> set[RunId]:
        return {run.id for run in await self.store.active(100) if run.state is RunState.RUNNING}


QUEUED = RunState.QUEUED


async def test_higher_priority_leaves_the_queue_first() -> None:
    queue = Queue()
    busy = await queue.submit()
    async with queue.worker(dataclasses.replace(WIDE, slots=1)) as worker:
        usual = await queue.submit()
        urgent = await queue.submit(priority=1)
        await queue.finish(worker, busy)
        assert await queue.running() == {urgent}
        await queue.finish(worker, urgent)
        assert await queue.running() == {usual}


async def test_two_people_take_turns_whatever_the_one_has_waiting() -> None:
    queue = Queue()
    anns = [await queue.submit(user="ann") for _ in range(20)]
    async with queue.worker(dataclasses.replace(WIDE, slots=1)) as worker:
        bobs = [await queue.submit(user="bob") for _ in range(5)]
        for _ in range(10):
            [run_id] = await queue.running()
            await queue.finish(worker, run_id, after=timedelta(minutes=3))
    assert sum(run_id in bobs for run_id in queue.engine.begun) == 5
    assert sum(run_id in anns for run_id in queue.engine.begun) == 6


async def test_an_exclusive_run_is_alone_and_is_not_overtaken() -> None:
    queue = Queue()
    first, second = await queue.submit(), await queue.submit(user="bob")
    async with queue.worker() as worker:
        alone = await queue.submit(user="eve", demand=ALONE)
        await queue.turn(worker)
        later = await queue.submit(user="bob")
        await queue.turn(worker)
        assert await queue.running() == {first, second}
        await queue.finish(worker, first)
        assert await queue.running() == {second}
        await queue.finish(worker, second)
        assert await queue.running() == {alone}
        await queue.finish(worker, alone)
        assert await queue.running() == {later}


async def test_runs_share_cpus_and_memory() -> None:
    queue = Queue()
    big = await queue.submit(demand=Demand(cpus=3, memory_bytes=2**29))
    async with queue.worker() as worker:
        cpus = await queue.submit(demand=Demand(cpus=2))
        small = await queue.submit(demand=Demand(cpus=1, memory_bytes=2**29))
        await queue.turn(worker)
        assert await queue.running() == {big}  # the one that waits in front keeps its CPUs free
        await queue.finish(worker, big)
        assert await queue.running() == {cpus, small}


async def test_a_benchmark_runs_no_more_often_than_it_wants() -> None:
    queue = Queue()
    limited = [await queue.submit(demand=Demand(concurrency=2)) for _ in range(3)]
    other = await queue.submit(benchmark="bert")
    async with queue.worker() as worker:
        assert await queue.running() == {*limited[:2], other}
        assert await queue.states(limited[2]) == [QUEUED]
        await queue.finish(worker, limited[0])
        assert await queue.running() == {*limited[1:], other}


async def test_what_another_worker_carries_counts() -> None:
    queue = Queue()
    theirs = await queue.submit(demand=ALONE)
    async with queue.worker(name="theirs"), queue.worker(name="ours") as ours:
        mine = await queue.submit()
        await queue.turn(ours)
        assert await queue.running() == {theirs}
        queue.engine.finish(theirs)
        await queue.turn(ours)
        assert mine in queue.engine.begun


async def test_a_run_whose_engine_is_not_here_ends_though_there_is_no_room() -> None:
    queue = Queue()
    await queue.submit(demand=ALONE)
    async with queue.worker() as worker:
        lost = await queue.submit(engine="docker")
        queue.clock.advance(timedelta(seconds=1))
        await queue.turn(worker)
        run = await queue.store.get(lost)
    assert run.state is RunState.ERROR
    assert run.outcome is not None
    assert "there is no engine 'docker' here" in run.outcome.reason


async def test_more_slots_than_are_looked_at_in_one_go_are_filled() -> None:
    queue = Queue()
    for _ in range(100):
        await queue.submit()
    async with queue.worker(dataclasses.replace(WIDE, slots=80)):
        assert len(await queue.running()) == 80


@pytest.mark.parametrize("slots", [1, 3])
async def test_runs_for_which_the_engine_became_too_small_keep_none_behind_them(slots: int) -> None:
    queue = Queue()
    vain = [await queue.submit(demand=Demand(gpus=8)) for _ in range(5)]
    behind = [await queue.submit() for _ in range(4)]

    async with queue.worker(dataclasses.replace(WIDE, slots=slots)) as worker:
        assert await queue.running() == set(behind[:slots])

        await queue.finish(worker, behind[0])

        assert await queue.running() == set(behind[1 : slots + 1])
        assert await queue.states(*vain) == [QUEUED] * 5


async def test_people_still_pay_after_a_restart_for_what_they_used() -> None:
    queue = Queue()
    first = await queue.submit(user="ann")
    async with queue.worker(name="same") as worker:
        await queue.finish(worker, first, after=timedelta(minutes=10))
    anns, bobs = await queue.submit(user="ann"), await queue.submit(user="bob")
    async with queue.worker(dataclasses.replace(WIDE, slots=1), name="same"):
        assert await queue.running() == {bobs}
    assert anns not in queue.engine.begun


async def test_events_say_whether_a_run_had_to_wait() -> None:
    queue = Queue()
    at_once = await queue.submit(demand=ALONE)
    waits = await queue.submit()
    async with queue.worker():
        pass

    async def messages(run_id: RunId) -> list[str]:
        events = await queue.store.events(run_id)
        return [event.message for event in events if event.data.get("to") == "QUEUED"]

    assert await messages(at_once) == ["there is room for it"]
    assert await messages(waits) == ["waits for its turn"]


async def given(store: MemoryRunStore, run_ids: Sequence[RunId]) -> list[object]:
    events = [event for run_id in run_ids for event in await store.events(run_id)]
    return [event.data["gpus"] for event in events if event.kind is EventKind.NOTE]


async def test_every_run_gets_gpus_that_no_other_has() -> None:
    queue = Queue()
    two = await queue.submit(demand=Demand(gpus=2))
    one = await queue.submit(demand=Demand(gpus=1))
    none = await queue.submit()
    async with queue.worker() as worker:
        assert [queue.engine.gpus_of(run) for run in (two, one, none)] == ["0,1", "2", None]
        late = await queue.submit(demand=Demand(gpus=2))
        await queue.turn(worker)
        assert await queue.states(late) == [QUEUED]
        await queue.finish(worker, two)
        assert queue.engine.gpus_of(late) == "0,1"
    assert await given(queue.store, [two, one, none, late]) == ["0, 1", "2", "0, 1"]


async def test_gpus_are_kept_over_a_crash_of_the_worker() -> None:
    queue = Queue()
    first = await queue.submit(demand=Demand(gpus=1))
    async with queue.worker(name="same"):
        assert queue.engine.gpus_of(first) == "0"
    async with queue.worker(name="same") as worker:
        second = await queue.submit(demand=Demand(gpus=1))
        await queue.turn(worker)
        assert queue.engine.gpus_of(second) == "1"


async def test_a_start_that_is_repeated_after_a_crash_has_the_same_gpus() -> None:
    queue = Queue()
    first = await queue.submit(demand=Demand(gpus=1))
    second = await queue.submit(demand=Demand(gpus=1))
    queue.engine.unavailable = True
    async with queue.worker(name="same"):
        assert await queue.states(first, second) == [RunState.STARTING, RunState.STARTING]
    queue.engine.unavailable = False
    queue.engine.plans.clear()
    async with queue.worker(name="same"):
        assert [queue.engine.gpus_of(run) for run in (first, second)] == ["0", "1"]


async def test_an_engine_that_numbers_its_gpus_itself_is_told_no_numbers() -> None:
    queue = Queue()
    run_id = await queue.submit(demand=Demand(gpus=2))
    async with queue.worker(dataclasses.replace(WIDE, numbers_gpus=False)):
        assert await queue.states(run_id) == [RunState.RUNNING]
        assert queue.engine.gpus_of(run_id) is None
        assert queue.engine.plans[run_id].units[0].resources.gpu_ids == ()
    assert await given(queue.store, [run_id]) == []


async def test_a_descriptor_that_names_its_gpus_is_believed() -> None:
    queue = Queue()
    run_id = await queue.submit(
        demand=Demand(gpus=1), environment={"CUDA_VISIBLE_DEVICES": "GPU-1234"}
    )
    async with queue.worker():
        assert queue.engine.gpus_of(run_id) == "GPU-1234"


@pytest.mark.parametrize("slots", [1, 3])
async def test_many_short_runs_of_many_people_all_end(slots: int) -> None:
    queue = Queue()
    queue.engine = Watched(queue.clock, Script())
    people = ("ann", "bob", "eve")
    demands = (Demand(), ALONE, Demand(cpus=2), Demand(concurrency=1))
    runs: list[RunId] = [
        await queue.submit(user=people[number % 3], demand=demands[number % 4])
        for number in range(24)
    ]
    async with queue.worker(dataclasses.replace(WIDE, slots=slots)) as worker:
        for _ in range(5):
            await queue.turn(worker)
    assert set(await queue.states(*runs)) == {RunState.SUCCEEDED}


class Laborious(MemoryRunStore):
    """A store in which so many people wait that looking at all of them takes long."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock
        self.looked: list[float] = []

    async def heads(
        self, *, now: datetime, states: Collection[RunState], each: int
    ) -> Sequence[Run]:
        self.looked.append(self._clock.monotonic())
        self._clock.advance(timedelta(seconds=0.1))
        return await super().heads(now=now, states=states, each=each)


async def test_choosing_among_very_many_leaves_time_for_others() -> None:
    queue = Queue()
    queue.store = store = Laborious(queue.clock)
    first = [await queue.submit() for _ in range(2)]
    async with queue.worker() as worker:
        assert await queue.running() == set(first)
        second = await queue.submit()
        await queue.turn(worker)
        assert second not in await queue.running()
        queue.clock.advance(timedelta(seconds=0.5))
        await queue.turn(worker)
        assert second in await queue.running()
    gaps = [later - sooner for sooner, later in itertools.pairwise(store.looked)]
    assert min(gaps) >= 0.5


async def test_runs_that_cannot_start_are_not_looked_at_again_until_something_happens() -> None:
    queue = Queue()
    queue.store = store = Laborious(queue.clock)
    first, second = await queue.submit(demand=ALL), await queue.submit(demand=ALL)
    async with queue.worker() as worker:
        assert await queue.states(first, second) == [RunState.RUNNING, QUEUED]
        store.looked.clear()
        for _ in range(5):
            queue.clock.advance(timedelta(seconds=1))
            await queue.turn(worker)
        assert len(store.looked) <= 1  # since the second one was brought to the queue

        await queue.finish(worker, first)
        assert await queue.states(second) == [RunState.RUNNING]
