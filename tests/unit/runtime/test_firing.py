"""The firer: each firing becomes one run, over crashes, races, set clocks and broken schedules."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.adapters.run_store.sqlite import SqliteRunStore
from anubis.adapters.schedule_store.memory import MemoryScheduleStore
from anubis.adapters.schedule_store.sqlite import SqliteScheduleStore
from anubis.adapters.sqlite import Database
from anubis.domain.errors import StoreUnavailable, UserError
from anubis.domain.event import NewEvent
from anubis.domain.run import Run, RunId, RunState, WorkerId
from anubis.domain.schedule import CatchUp, Overlap, Schedule, ScheduleId
from anubis.ports.run_reader import RunQuery
from anubis.ports.run_store import RunStore
from anubis.ports.schedule_store import ScheduleStore
from anubis.runtime.firing import LOOK_EVERY, Desk, Firer
from anubis.runtime.supervising import Supervisor
from anubis.stages.scheduling import occurrences
from anubis.testing import builders
from anubis.testing.clock import NOON, ManualClock

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
WORKER = WorkerId("w")


class Shop:
    """Two stores, a clock, and what submitting does."""

    def __init__(
        self, schedules: ScheduleStore | None = None, runs: RunStore | None = None
    ) -> None:
        self.schedules: ScheduleStore = schedules or MemoryScheduleStore()
        self.runs: RunStore = runs or MemoryRunStore()
        self.clock = ManualClock(NOON - MINUTE)
        self.broken: Exception | None = None
        self.expected = 0

    @contextlib.asynccontextmanager
    async def firer(self) -> AsyncIterator[Firer]:
        desk = Desk(
            schedules=self.schedules,
            runs=self.runs,
            clock=self.clock,
            submit=self.submit,
            expecting=self._expect,
        )
        async with Supervisor() as supervisor:
            yield Firer(desk, supervisor)

    def _expect(self) -> None:
        self.expected += 1

    async def submit(self, schedule: Schedule, moment: datetime, run_id: RunId) -> Run:
        if self.broken is not None:
            raise self.broken
        document = await self.schedules.document(schedule.id)
        run = builders.a_run(document=document, family=schedule.id, at=self.clock.now())
        run = dataclasses.replace(run, id=run_id)
        return await self.runs.add(run, document, builders.PLAN, f"due at {moment}")

    async def add(
        self,
        number: int = 0,
        *,
        overlap: Overlap = Overlap.QUEUE,
        catch_up: CatchUp = CatchUp.LAST,
        next_at: datetime = NOON,
    ) -> ScheduleId:
        """A schedule of every hour, next at noon."""
        schedule = builders.a_schedule(number, at=NOON - HOUR / 2, next_at=next_at)
        return await self.keep(dataclasses.replace(schedule, overlap=overlap, catch_up=catch_up))

    async def keep(self, schedule: Schedule) -> ScheduleId:
        await self.schedules.add(schedule, builders.a_document(), "made")
        return schedule.id

    async def fired(self, schedule_id: ScheduleId) -> list[Run]:
        return list(await self.runs.page(RunQuery(family=schedule_id, limit=1000)))[::-1]

    async def story(self, schedule_id: ScheduleId) -> list[str]:
        return [event.message for event in await self.schedules.events(schedule_id)][1:]

    async def end(self, run_id: RunId) -> None:
        states = [RunState.SUBMITTED]
        await self.runs.lease(
            WORKER, now=self.clock.now(), duration=HOUR, states=states, limit=10, among=[run_id]
        )
        await self.runs.apply(WORKER, builders.a_step(run_id, *builders.PATH_TO_SUCCESS))


@pytest.fixture
def shop() -> Shop:
    return Shop()


async def turn(shop: Shop, at: datetime) -> None:
    """Let a firer that was there all the time act at a moment."""
    shop.clock.advance(at - shop.clock.now())
    async with shop.firer() as firer:
        await firer.turn()


# -- the rhythm ----------------------------------------------------------------------------------


async def test_each_hour_makes_one_run_of_the_family(shop: Shop) -> None:
    schedule_id = await shop.add()
    async with shop.firer() as firer, running(firer):
        await shop.clock.run_for(3 * HOUR)
    runs = await shop.fired(schedule_id)
    assert [run.submitted_at for run in runs] == [NOON, NOON + HOUR, NOON + 2 * HOUR]
    stored = await shop.schedules.get(schedule_id)
    assert (stored.fired, stored.last_run) == (3, runs[-1].id)
    assert stored.next_at == NOON + 3 * HOUR
    assert len(await shop.story(schedule_id)) == 3


async def test_a_schedule_that_is_added_meanwhile_fires_on_time(shop: Shop) -> None:
    async with shop.firer() as firer, running(firer):
        await shop.clock.run_for(MINUTE / 2)
        schedule_id = await shop.add()
        await shop.clock.run_for(MINUTE)
    [run] = await shop.fired(schedule_id)
    assert run.submitted_at - NOON <= timedelta(seconds=LOOK_EVERY)


async def test_who_guards_the_firer_hears_of_the_first_schedule_to_come(shop: Shop) -> None:
    async with shop.firer() as firer, running(firer):
        await shop.clock.run_for(MINUTE / 2)
        assert shop.expected == 0
        await shop.add(1)
        await shop.add(2)
        await shop.clock.run_for(MINUTE)
    assert shop.expected == 1


async def test_many_schedules_that_are_due_at_once_all_fire(shop: Shop) -> None:
    ids = [await shop.add(number) for number in range(250)]
    await turn(shop, NOON)
    assert [len(await shop.fired(one)) for one in ids] == [1] * 250


async def test_a_paused_schedule_fires_nothing(shop: Shop) -> None:
    schedule_id = await shop.add()
    schedule = await shop.schedules.get(schedule_id)
    await shop.schedules.replace(dataclasses.replace(schedule, paused_at=NOON, next_at=None))
    async with shop.firer() as firer, running(firer):
        await shop.clock.run_for(HOUR / 4)
    assert await shop.fired(schedule_id) == []


@contextlib.asynccontextmanager
async def running(firer: Firer) -> AsyncIterator[None]:
    task = asyncio.create_task(firer.keep_firing())
    yield
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


# -- policies ------------------------------------------------------------------------------------


async def test_skip_waits_for_the_run_before(shop: Shop) -> None:
    schedule_id = await shop.add(overlap=Overlap.SKIP)
    await turn(shop, NOON)
    await turn(shop, NOON + HOUR)
    [first] = await shop.fired(schedule_id)
    await shop.end(first.id)
    await turn(shop, NOON + 2 * HOUR)
    assert len(await shop.fired(schedule_id)) == 2
    story = await shop.story(schedule_id)
    assert "left out: another run of this schedule has not ended" in story[1]


async def test_queue_lets_runs_wait_for_each_other(shop: Shop) -> None:
    schedule_id = await shop.add(overlap=Overlap.QUEUE)
    await turn(shop, NOON)
    await turn(shop, NOON + HOUR)
    runs = await shop.fired(schedule_id)
    assert [run.state for run in runs] == [RunState.SUBMITTED] * 2
    assert [run.cancel_requested_at for run in runs] == [None, None]


async def test_cancel_previous_cancels_the_run_before_and_tells_it(shop: Shop) -> None:
    schedule_id = await shop.add(overlap=Overlap.CANCEL_PREVIOUS)
    for hour in range(2):
        await turn(shop, NOON + hour * HOUR)
    first, second = await shop.fired(schedule_id)
    assert first.cancel_requested_at == NOON + HOUR
    assert second.cancel_requested_at is None
    assert f"asked run {first.id} to stop" in (await shop.story(schedule_id))[-1]


async def test_a_run_that_ends_and_is_purged_as_it_is_canceled_spoils_no_firing(shop: Shop) -> None:
    schedule_id = await shop.add(overlap=Overlap.CANCEL_PREVIOUS)
    await turn(shop, NOON)
    [first] = await shop.fired(schedule_id)
    submit = shop.submit

    async def purging(schedule: Schedule, moment: datetime, run_id: RunId) -> Run:
        await shop.end(first.id)
        await shop.runs.delete(first.id)
        return await submit(schedule, moment, run_id)

    shop.submit = purging  # type: ignore[method-assign]  # somebody else acts meanwhile
    await turn(shop, NOON + HOUR)
    [second] = await shop.fired(schedule_id)
    stored = await shop.schedules.get(schedule_id)
    assert (stored.fired, stored.last_run) == (2, second.id)


async def test_a_run_is_not_canceled_for_one_that_cannot_be_made(shop: Shop) -> None:
    schedule_id = await shop.add(overlap=Overlap.CANCEL_PREVIOUS)
    await turn(shop, NOON)
    shop.broken = UserError("no")
    await turn(shop, NOON + HOUR)
    [first] = await shop.fired(schedule_id)
    assert first.cancel_requested_at is None


@pytest.mark.parametrize(
    ("policy", "hours"), [(CatchUp.NONE, []), (CatchUp.LAST, [14]), (CatchUp.ALL, [12, 13, 14])]
)
async def test_after_downtime_what_the_policy_says_is_made_up_for(
    shop: Shop, policy: CatchUp, hours: list[int]
) -> None:
    schedule_id = await shop.add(catch_up=policy)
    await turn(shop, NOON + 2.5 * HOUR)
    await turn(shop, NOON + 2.5 * HOUR)
    messages = [await first_event(shop, run) for run in await shop.fired(schedule_id)]
    assert messages == [f"due at 2024-05-17 {hour}:00:00+00:00" for hour in hours]


async def first_event(shop: Shop, run: Run) -> str:
    return (await shop.runs.events(run.id))[0].message


# -- crashes and races ---------------------------------------------------------------------------


class FallibleSchedules(MemoryScheduleStore):
    """Lets the process die when it is about to move a schedule on."""

    deadly = True

    async def replace(
        self, schedule: Schedule, *, events: Sequence[NewEvent] = ()
    ) -> Schedule | None:
        if self.deadly:
            raise asyncio.CancelledError  # what a task sees of it
        return await super().replace(schedule, events=events)


@pytest.mark.parametrize("overlap", Overlap)
@pytest.mark.parametrize("catch_up", CatchUp)
@pytest.mark.parametrize("later", [timedelta(0), MINUTE / 2, 2.5 * HOUR])
async def test_a_death_between_the_two_steps_neither_loses_nor_doubles_a_firing(
    overlap: Overlap, catch_up: CatchUp, later: timedelta
) -> None:
    store = FallibleSchedules()
    shop = Shop(store)
    schedule_id = await shop.add(overlap=overlap, catch_up=catch_up)
    await turn(shop, NOON)
    [left] = await shop.fired(schedule_id)  # the run is there, and the schedule does not know
    assert (await shop.schedules.get(schedule_id)).next_at == NOON

    store.deadly = False
    await turn(shop, NOON + later)

    runs = await shop.fired(schedule_id)
    assert runs[0].id == left.id
    stored = await shop.schedules.get(schedule_id)
    assert stored.fired == len(runs) == len({run.id for run in runs})
    assert any(left.id in message for message in await shop.story(schedule_id))
    if later < HOUR:
        assert len(runs) == 1
        assert runs[0].cancel_requested_at is None


async def test_a_store_that_does_not_answer_delays_a_firing_and_loses_none(shop: Shop) -> None:
    schedule_id = await shop.add()
    shop.broken = StoreUnavailable("away")
    async with shop.firer() as firer, running(firer):
        await shop.clock.run_for(MINUTE + MINUTE / 2)
        assert await shop.fired(schedule_id) == []
        shop.broken = None
        await shop.clock.run_for(MINUTE / 4)
    assert len(await shop.fired(schedule_id)) == 1


async def test_firers_of_two_processes_make_one_run_for_each_firing(tmp_path: Path) -> None:
    """Two connections to one file, as two services have, at the same moments."""
    path = tmp_path / "anubis.sqlite"
    async with Database.open(path) as one, Database.open(path) as other:
        shops = [Shop(SqliteScheduleStore(db), SqliteRunStore(db)) for db in (one, other)]
        ids = [await shops[0].add(number, overlap=Overlap.QUEUE) for number in range(10)]
        for hour in range(5):
            await asyncio.gather(*(turn(shop, NOON + hour * HOUR) for shop in shops))
        for schedule_id in ids:
            runs = await shops[0].fired(schedule_id)
            assert len(runs) == 5
            stored = await shops[1].schedules.get(schedule_id)
            assert (stored.fired, stored.last_run) == (5, runs[-1].id)
            assert len(await shops[0].story(schedule_id)) == 5


async def test_a_firing_in_the_moment_of_a_pause_is_still_told(shop: Shop) -> None:
    schedule_id = await shop.add()
    submit = shop.submit

    async def pausing(schedule: Schedule, moment: datetime, run_id: RunId) -> Run:
        run = await submit(schedule, moment, run_id)
        paused = dataclasses.replace(schedule, paused_at=NOON, next_at=None)
        assert await shop.schedules.replace(paused)
        return run

    shop.submit = pausing  # type: ignore[method-assign]  # somebody else acts meanwhile
    await turn(shop, NOON)
    [run] = await shop.fired(schedule_id)
    stored = await shop.schedules.get(schedule_id)
    assert stored.is_paused
    assert (stored.next_at, stored.fired, stored.last_run) == (None, 1, run.id)


async def test_a_firing_between_a_pause_and_its_end_is_still_told(shop: Shop) -> None:
    schedule_id = await shop.add()
    submit = shop.submit

    async def pausing(schedule: Schedule, moment: datetime, run_id: RunId) -> Run:
        run = await submit(schedule, moment, run_id)
        paused = await shop.schedules.replace(
            dataclasses.replace(schedule, paused_at=NOON, next_at=None)
        )
        assert paused is not None
        resumed = dataclasses.replace(paused, paused_at=None, next_at=NOON + HOUR)
        assert await shop.schedules.replace(resumed)
        return run

    shop.submit = pausing  # type: ignore[method-assign]  # somebody else acts meanwhile
    await turn(shop, NOON)
    [run] = await shop.fired(schedule_id)
    stored = await shop.schedules.get(schedule_id)
    assert (stored.next_at, stored.fired, stored.last_run) == (NOON + HOUR, 1, run.id)
    assert len(await shop.story(schedule_id)) == 1


async def test_a_schedule_removed_while_it_fires_disturbs_nobody(shop: Shop) -> None:
    gone, other = await shop.add(1), await shop.add(2)
    submit = shop.submit

    async def removing(schedule: Schedule, moment: datetime, run_id: RunId) -> Run:
        run = await submit(schedule, moment, run_id)
        if schedule.id == gone:
            await shop.schedules.delete(gone)
        return run

    shop.submit = removing  # type: ignore[method-assign]  # somebody else acts meanwhile
    await turn(shop, NOON)
    assert len(await shop.fired(gone)) == len(await shop.fired(other)) == 1


# -- trouble with one schedule -------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble", [UserError("not valid any more"), ZeroDivisionError("a defect")]
)
async def test_trouble_with_one_schedule_is_its_own(shop: Shop, trouble: Exception) -> None:
    bad, good = await shop.add(1), await shop.add(2)
    submit = shop.submit

    async def failing(schedule: Schedule, moment: datetime, run_id: RunId) -> Run:
        if schedule.id == bad:
            raise trouble
        return await submit(schedule, moment, run_id)

    shop.submit = failing  # type: ignore[method-assign]  # a descriptor that is not valid any more
    for hour in range(2):
        await turn(shop, NOON + hour * HOUR)
    assert len(await shop.fired(good)) == 2
    assert await shop.fired(bad) == []
    story = await shop.story(bad)
    assert len(story) == 2
    assert str(trouble) in story[0]
    assert (await shop.schedules.get(bad)).next_at == NOON + 2 * HOUR


async def test_a_time_zone_that_is_gone_ends_a_schedule_with_a_word(shop: Shop) -> None:
    schedule_id = await shop.add()
    schedule = await shop.schedules.get(schedule_id)
    await shop.schedules.replace(dataclasses.replace(schedule, time_zone="Europe/Atlantis"))
    await turn(shop, NOON)
    stored = await shop.schedules.get(schedule_id)
    assert stored.next_at is None
    assert "no time zone 'Europe/Atlantis'" in stored.last_note


# -- a clock that is set -------------------------------------------------------------------------


async def test_a_clock_set_forward_is_like_downtime(shop: Shop) -> None:
    schedule_id = await shop.add()
    async with shop.firer() as firer, running(firer):
        await shop.clock.run_for(MINUTE)
        shop.clock.advance(5.5 * HOUR)
        await shop.clock.run_for(MINUTE)
    assert len(await shop.fired(schedule_id)) == 2  # at noon, and one for all that was missed


async def test_a_clock_set_back_a_little_repeats_no_firing(shop: Shop) -> None:
    schedule_id = await shop.add()
    async with shop.firer() as firer:
        for at in (NOON, NOON - HOUR / 2, NOON):
            shop.clock.advance(at - shop.clock.now())
            await firer.turn()
    assert len(await shop.fired(schedule_id)) == 1
    assert (await shop.schedules.get(schedule_id)).fired == 1


async def test_a_clock_that_ran_far_ahead_does_not_silence_a_schedule(shop: Shop) -> None:
    schedule_id = await shop.add()
    far = NOON + timedelta(days=2000)
    async with shop.firer() as firer:
        for at in (far, NOON - MINUTE, NOON):
            shop.clock.advance(at - shop.clock.now())
            await firer.turn()
    assert len(await shop.fired(schedule_id)) == 2  # one in the wrong future, one at noon
    assert any("the clock was set back" in line for line in await shop.story(schedule_id))


async def test_a_firer_that_starts_after_the_clock_was_set_back_notices_too(shop: Shop) -> None:
    schedule_id = await shop.add(next_at=NOON + timedelta(days=2000))
    await turn(shop, NOON - MINUTE)
    assert (await shop.schedules.get(schedule_id)).next_at == NOON


@pytest.mark.parametrize(
    ("zone", "cron", "start", "fired"),
    [
        # Clocks in Berlin go from 02:00 to 03:00 on 31 March, and from 03:00 to 02:00 in October.
        ("Europe/Berlin", "30 2 * * *", "2024-03-31T00:00Z", ["01:00"]),
        ("Europe/Berlin", "30 2 * * *", "2024-10-27T00:00Z", ["00:30"]),
        ("Europe/Berlin", "0 * * * *", "2024-03-31T00:00Z", ["01:00", "02:00", "03:00"]),
        ("Europe/Berlin", "0 * * * *", "2024-10-27T00:00Z", ["01:00", "02:00", "03:00"]),
        # On Lord Howe they go from 02:00 to 01:30 on 7 April, and from 02:00 to 02:30 in October.
        ("Australia/Lord_Howe", "45 1 * * *", "2024-04-06T14:00Z", ["14:45"]),
        ("Australia/Lord_Howe", "10 2 * * *", "2024-10-05T14:30Z", ["15:30"]),
        (
            "Australia/Lord_Howe",
            "*/30 * * * *",
            "2024-04-06T14:00Z",
            ["14:30", "15:00", "15:30", "16:00", "16:30", "17:00"],
        ),
    ],
)
async def test_the_night_when_the_clocks_change_has_neither_gap_nor_double(
    shop: Shop, zone: str, cron: str, start: str, fired: list[str]
) -> None:
    begin = datetime.fromisoformat(start)
    schedule = dataclasses.replace(builders.a_schedule(at=begin), cron=cron, time_zone=zone)
    first = occurrences.following(cron, zone, after=begin)
    schedule_id = await shop.keep(
        dataclasses.replace(schedule, next_at=first, overlap=Overlap.QUEUE)
    )
    for minute in range(1, 181):
        await turn(shop, begin + minute * MINUTE)
    runs = await shop.fired(schedule_id)
    assert [run.submitted_at.strftime("%H:%M") for run in runs] == fired
