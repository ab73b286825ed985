"""Broadcasting: whoever leaves and comes back, to this process or the next, misses nothing."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anubis.adapters.event_bus.in_process import InProcessBus
from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.domain.errors import RunNotFound, StoreUnavailable, TemporaryError, TooMuch
from anubis.domain.event import Event
from anubis.domain.run import Run, RunId, RunState, WorkerId
from anubis.ports.run_reader import RunQuery
from anubis.ports.run_store import Step
from anubis.runtime import channels
from anubis.runtime.broadcasting import Broadcaster, Watch
from anubis.testing import builders
from anubis.testing.clock import ManualClock

WORKER = WorkerId("w")


@dataclasses.dataclass(frozen=True)
class Frame:
    """One frame of a stream, as a client reads it."""

    kind: str
    id: int | None
    data: object


def parsed(text: bytes) -> list[Frame]:
    """The frames of a piece of a stream."""
    found = []
    for block in text.decode().removesuffix("\n\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        number = int(fields["id"]) if "id" in fields else None
        found.append(Frame(fields["event"], number, json.loads(fields["data"])))
    return found


def ids(frames: Sequence[Frame]) -> list[int]:
    """The sequences of the events among them."""
    return [frame.id for frame in frames if frame.id is not None]


async def available(watch: Watch) -> list[Frame]:
    """All that a watcher gets without anything new happening."""
    found: list[Frame] = []
    while True:
        try:
            async with asyncio.timeout(0):
                text = await watch.next()
        except TimeoutError:
            return found
        if text is None:
            return found
        found += parsed(text)


class World:
    """A store, and the service over it, which may be restarted."""

    def __init__(self) -> None:
        self.store = MemoryRunStore()
        self.clock = ManualClock()
        self._made = 0
        self.restart()

    def restart(self) -> None:
        self.broadcaster = Broadcaster(self.store, self.clock, InProcessBus())

    async def submit(self) -> RunId:
        self._made += 1
        document = builders.a_document()
        run = builders.a_run(self._made, document=document)
        await self.store.add(run, document, builders.PLAN, "submitted")
        return run.id

    async def lease(self, run_id: RunId) -> None:
        now, hour = self.clock.now(), timedelta(hours=1)
        await self.store.lease(
            WORKER, now=now, duration=hour, states=set(RunState), limit=1, among={run_id}
        )

    async def move(self, run_id: RunId, *states: RunState) -> Run:
        await self.lease(run_id)
        return await self.store.apply(WORKER, builders.a_step(run_id, *states))

    async def turn(self, seconds: float = 1.0) -> None:
        """Let the service look, late enough for every rhythm."""
        self.clock.advance(timedelta(seconds=seconds))
        await self.broadcaster.turn()


@pytest.fixture
def world() -> World:
    return World()


OPERATIONS = st.lists(
    st.sampled_from(["submit", "move", "purge", "turn", "read", "leave", "come", "restart"]),
    max_size=40,
)


@settings(max_examples=300)
@given(OPERATIONS, st.integers(1, 5))
async def test_random_reconnects_and_restarts_neither_lose_nor_double(
    operations: list[str], kept: int
) -> None:
    """Small pages and a short memory, so that every way to the store is taken."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("KEPT", kept), ("PAGE", 2), ("SENT", 2)):
            patch.setattr(channels, name, value)
        world, purged = World(), set[int]()
        async with _Watcher(world) as watcher:
            for operation in operations:
                await _do(operation, world, watcher, purged)
            await world.turn()
            await watcher.read()

    every = [event.sequence for event in await world.store.feed(after=0)]
    assert watcher.seen == sorted(set(watcher.seen))
    assert set(every) <= set(watcher.seen) <= set(every) | purged


class _Watcher(contextlib.AsyncExitStack):
    """Watches all runs from the beginning, in several visits."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.seen: list[int] = []
        self._world = world
        self._visit: Watch | None = None

    async def read(self) -> None:
        self._visit = self._visit or await self._come()
        self.seen += ids(await available(self._visit))

    async def leave(self) -> None:
        await self.aclose()
        self._visit = None

    async def _come(self) -> Watch:
        last = self.seen[-1] if self.seen else 0
        return await self.enter_async_context(self._world.broadcaster.everything(last))


async def _do(operation: str, world: World, watcher: _Watcher, purged: set[int]) -> None:
    runs = await world.store.page(RunQuery(limit=100))
    if operation == "submit":
        await world.submit()
    elif operation == "move" and runs and not runs[0].state.is_terminal:
        await world.move(runs[0].id, RunState.CANCELED)
    elif operation == "purge" and runs and runs[-1].state.is_terminal:
        purged |= {event.sequence for event in await world.store.events(runs[-1].id)}
        await world.store.delete(runs[-1].id)
    elif operation == "turn":
        await world.turn()
    elif operation in ("read", "come"):
        await watcher.read()
    elif operation == "leave":
        await watcher.leave()
    elif operation == "restart":
        await watcher.leave()
        world.restart()


async def test_a_watcher_of_everything_starts_with_what_comes(world: World) -> None:
    await world.submit()
    async with world.broadcaster.everything(None) as watch:
        assert await available(watch) == []
        run_id = await world.submit()
        await world.turn()
        [frame] = await available(watch)

    assert frame.kind == "event"
    assert isinstance(frame.data, dict)
    assert (frame.data["run"], frame.data["sequence"]) == (run_id, frame.id)


async def test_a_place_of_another_store_means_from_now_on(world: World) -> None:
    """The home was deleted and made anew: the numbers begin again."""
    await world.submit()
    async with world.broadcaster.everything(10**15) as watch:
        await world.submit()
        await world.turn()
        assert ids(await available(watch)) == [2]


async def test_a_watcher_that_is_canceled_while_it_waits_loses_nothing(world: World) -> None:
    async with world.broadcaster.everything(0) as watch:
        waiting = asyncio.create_task(_next(watch))
        await asyncio.sleep(0)
        await world.submit()
        await world.turn()
        waiting.cancel()  # it has been woken, but did not run
        await asyncio.gather(waiting, return_exceptions=True)
        assert ids(await available(watch)) == [1]


async def _next(watch: Watch) -> bytes | None:
    return await watch.next()


async def test_a_run_shows_what_it_is_then_its_story_then_its_end(world: World) -> None:
    run_id = await world.submit()
    await world.move(run_id, *builders.PATH_TO_SUCCESS)
    async with world.broadcaster.one(run_id, 0) as watch:
        frames = await available(watch)

    assert [frame.kind for frame in frames] == ["run", "metrics", *["event"] * 7, "end"]
    assert ids(frames) == list(range(1, 8))
    assert frames[-1].data == frames[0].data


async def test_an_ended_run_gives_what_is_missing_and_its_end(world: World) -> None:
    run_id = await world.submit()
    await world.move(run_id, *builders.PATH_TO_SUCCESS)
    async with world.broadcaster.one(run_id, 5) as watch:
        frames = await available(watch)
        assert await watch.next() is None

    assert ids(frames) == [6, 7]
    assert frames[-1].kind == "end"


async def test_a_run_is_followed_live_and_others_are_not_heard(world: World) -> None:
    run_id = await world.submit()
    async with world.broadcaster.one(run_id, 0) as watch:
        await available(watch)
        await world.submit()
        await world.turn()
        assert await available(watch) == []
        await world.move(run_id, RunState.FETCHING, RunState.QUEUED)
        await world.turn()
        frames = await available(watch)

    assert [frame.kind for frame in frames] == ["event", "event", "run"]
    assert isinstance(frames[-1].data, dict)
    assert frames[-1].data["state"] == "QUEUED"


async def test_new_metrics_come_without_an_event(world: World) -> None:
    run_id = await world.submit()
    await world.move(run_id, *builders.PATH_TO_SUCCESS[:4])
    async with world.broadcaster.one(run_id, 0) as watch:
        await available(watch)
        await world.store.apply(
            WORKER, Step(run_id=run_id, summaries=[builders.a_summary("loss", values=[1.0])])
        )
        await world.turn()
        frames = await available(watch)

    assert [frame.kind for frame in frames] == ["run", "metrics"]
    assert isinstance(frames[-1].data, list)
    assert [metric["name"] for metric in frames[-1].data] == ["loss"]


async def test_a_run_is_read_four_times_a_second_at_most_but_its_end_at_once(world: World) -> None:
    run_id = await world.submit()
    async with world.broadcaster.one(run_id, 0) as watch:
        await available(watch)
        await world.move(run_id, RunState.FETCHING)
        await world.turn(seconds=0.1)
        assert await available(watch) == []
        await world.turn(seconds=0.2)
        assert [frame.kind for frame in await available(watch)] == ["event", "run"]
        await world.move(run_id, RunState.CANCELED)
        await world.turn(seconds=0.01)
        assert [frame.kind for frame in await available(watch)] == ["event", "run", "end"]


async def test_watchers_of_one_run_share_what_is_read(world: World) -> None:
    run_id = await world.submit()
    async with contextlib.AsyncExitStack() as stack:
        watches = [
            await stack.enter_async_context(world.broadcaster.one(run_id, 0)) for _ in range(3)
        ]
        pieces = [await watch.next() for watch in watches]
        await world.move(run_id, RunState.FETCHING)
        reads = _counting(world.store)
        await world.turn()
        pieces += [await watch.next() for watch in watches]

    assert len(set(pieces)) == 2
    assert reads == ["get"]


def _counting(store: MemoryRunStore) -> list[str]:
    """From now on, each reading of a run is noted."""
    reads: list[str] = []
    original = store.get

    async def get(run_id: RunId) -> Run:
        reads.append("get")
        return await original(run_id)

    store.get = get  # type: ignore[method-assign]
    return reads


async def test_the_stream_of_a_purged_run_ends(world: World) -> None:
    run_id = await world.submit()
    async with world.broadcaster.one(run_id, 0) as watch:
        await available(watch)
        await world.move(run_id, RunState.CANCELED)
        await world.store.delete(run_id)
        await world.turn()
        assert await watch.next() is None

    with pytest.raises(RunNotFound):
        async with world.broadcaster.one(run_id, 0):
            pass
    assert world.broadcaster.watchers == 0


async def test_why_a_run_waits_is_told_and_told_again_when_it_changes(world: World) -> None:
    reasons = iter(["2 runs ahead", "2 runs ahead", "1 run ahead"])

    async def reason(_: Run) -> str:
        return next(reasons)

    broadcaster = Broadcaster(world.store, world.clock, InProcessBus(), reason=reason)
    run_id = await world.submit()
    told: list[object] = []
    async with broadcaster.one(run_id, 0) as watch:
        for _ in range(2):
            told += [frame.data for frame in await available(watch) if frame.kind == "run"]
            await world.submit()  # anything that is stored makes it look again
            world.clock.advance(timedelta(seconds=1))
            await broadcaster.turn()  # too soon to ask; but it will, whether anything is stored
            world.clock.advance(timedelta(seconds=channels.EXPLAIN_EVERY))
            await broadcaster.turn()
        told += [frame.data for frame in await available(watch) if frame.kind == "run"]

    assert [run["waiting_for"] for run in told if isinstance(run, dict)] == [
        "2 runs ahead",
        "1 run ahead",
    ]


async def test_why_runs_wait_is_not_asked_at_every_look(world: World) -> None:
    asked: list[RunId] = []

    async def reason(run: Run) -> str:
        asked.append(run.id)
        return ""

    broadcaster = Broadcaster(world.store, world.clock, InProcessBus(), reason=reason)
    run_id = await world.submit()
    async with broadcaster.one(run_id, 0):
        for _ in range(15):  # four seconds and a half
            await world.submit()
            world.clock.advance(timedelta(seconds=0.3))
            await broadcaster.turn()
    assert len(asked) == 2


async def test_too_many_watchers_are_refused_until_one_leaves(world: World) -> None:
    broadcaster = Broadcaster(world.store, world.clock, InProcessBus(), most=1)
    async with broadcaster.everything(None):
        with pytest.raises(TooMuch, match="1 streams are open"):
            async with broadcaster.everything(None):
                pass
    async with broadcaster.everything(None):
        pass


async def test_one_user_does_not_take_the_streams_of_all(world: World) -> None:
    broadcaster = Broadcaster(world.store, world.clock, InProcessBus(), most=4, most_each=2)
    run_id = await world.submit()
    async with broadcaster.everything(None, "ann"), broadcaster.one(run_id, 0, "ann"):
        with pytest.raises(TooMuch, match=r"ann has 2 streams open.*ANUBIS_MAX_STREAMS"):
            async with broadcaster.everything(None, "ann"):
                pass
        async with broadcaster.everything(None, "bob"):
            assert broadcaster.watchers == 3
    async with broadcaster.everything(None, "ann"):
        pass


@contextlib.asynccontextmanager
async def running(broadcaster: Broadcaster) -> AsyncIterator[asyncio.Task[None]]:
    """The broadcaster's task, ended at the end."""
    task = asyncio.create_task(broadcaster.run())
    try:
        yield task
    finally:
        broadcaster.close()
        await asyncio.gather(task, return_exceptions=True)


async def test_closing_ends_every_stream_and_the_task(world: World) -> None:
    run_id = await world.submit()
    async with (
        running(world.broadcaster) as task,
        world.broadcaster.everything(None) as all_runs,
        world.broadcaster.one(run_id, 0) as one_run,
    ):
        await available(one_run)
        waiting = [asyncio.create_task(_next(watch)) for watch in (all_runs, one_run)]
        await asyncio.sleep(0)
        world.broadcaster.close()
        assert await asyncio.gather(*waiting) == [None, None]
        await task
    with pytest.raises(TemporaryError, match="stopping"):
        async with world.broadcaster.everything(None):
            pass


async def test_the_task_hears_of_what_is_stored_by_itself(world: World) -> None:
    async with running(world.broadcaster), world.broadcaster.everything(None) as watch:
        await world.submit()
        async with asyncio.timeout(10):
            text = await watch.next()
    assert text is not None
    assert ids(parsed(text)) == [1]


async def test_a_store_that_does_not_answer_for_a_moment_costs_nothing_but_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anubis.runtime.broadcasting.RETRY_AFTER", 0.01)
    answers, original = iter([False, False]), world.store.feed

    async def feed(*, after: int, limit: int = 1000) -> Sequence[Event]:
        if not next(answers, True):
            raise StoreUnavailable("the disk is full")
        return await original(after=after, limit=limit)

    monkeypatch.setattr(world.store, "feed", feed)
    async with world.broadcaster.everything(None) as watch:
        await world.submit()
        async with running(world.broadcaster), asyncio.timeout(10):
            while True:  # the watcher may meet the store in its bad moment too, and tries again
                with contextlib.suppress(StoreUnavailable):
                    text = await watch.next()
                    break
    assert text is not None
    assert ids(parsed(text)) == [1]
