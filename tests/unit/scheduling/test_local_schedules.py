"""What users can ask of schedules, over memory stores and a clock that stands still."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest

from anubis.adapters.log_store.memory import MemoryLogStore
from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.adapters.schedule_store.memory import MemoryScheduleStore
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.adapters.series_store.memory import MemorySeriesStore
from anubis.bootstrap import firing
from anubis.bootstrap.application import Application, Submission
from anubis.bootstrap.local import LocalApplication
from anubis.bootstrap.surroundings import service_environment
from anubis.domain import plan as plans
from anubis.domain.document import Document
from anubis.domain.errors import (
    DescriptorInvalid,
    NotPossible,
    ScheduleNotFound,
    TooMuch,
    UserError,
)
from anubis.domain.run import Run
from anubis.domain.schedule import CatchUp, Overlap, Schedule, ScheduleId
from anubis.ports.engine import Capabilities
from anubis.ports.run_reader import RunQuery
from anubis.runtime import pending
from anubis.runtime.supervising import Supervisor
from anubis.settings.model import Settings
from anubis.testing import builders
from anubis.testing.clock import NOON, ManualClock

HOUR = timedelta(hours=1)
PROCESS = Capabilities(
    name="process", strategies=frozenset({"single_node"}), needs_image=False, honours_affinity=True
)
DESCRIPTOR = """\
spec_version = "0.1.0"
[info]
description = "d"
scheduling = "{cron}"
labels = {{ task_name = "nightly" }}
[ml]
benchmark_code = "true"
[schedule]
time_zone = "Europe/Berlin"
overlap = "queue"
catch_up = "all"
"""
HOURLY = "0 * * * *"


class World:
    def __init__(self, home: Path) -> None:
        self.woken = 0
        self.clock = ManualClock(NOON + HOUR / 2)
        self.runs = MemoryRunStore()
        self.kept = MemoryScheduleStore()
        self.scripts = MemoryScriptStore(self.clock)
        self.app = LocalApplication(
            settings=Settings(home=home),
            clock=self.clock,
            store=self.runs,
            schedule_store=self.kept,
            logs=MemoryLogStore(),
            series=MemorySeriesStore(),
            script_store=self.scripts,
            engines={"process": PROCESS},
            wake_runtime=self._wake,
        )
        self.schedules = self.app.schedules

    async def _wake(self) -> None:
        self.woken += 1

    async def add(self, cron: str = HOURLY, key: str | None = None) -> Schedule:
        return (await self.schedules.add(submission(cron, key=key))).schedule

    async def fire(self) -> None:
        async with Supervisor() as supervisor:
            await firing.firer(self.app, supervisor).turn()

    async def fired(self, schedule_id: ScheduleId) -> list[Run]:
        return list(await self.runs.page(RunQuery(family=schedule_id)))[::-1]

    async def story(self, schedule_id: ScheduleId) -> list[str]:
        return [event.message for event in await self.schedules.events(schedule_id)]


def submission(cron: str = HOURLY, *, key: str | None = None, text: str = "") -> Submission:
    content = (text or DESCRIPTOR.format(cron=cron)).encode()
    return Submission(
        document=Document(name="d.toml", directory="/tmp", content=content),
        submitter="ann",
        environment={"PATH": "/bin", "SECRET": "x"},
        priority=None,
        key=key,
    )


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_local_application_is_an_application(world: World) -> None:
    application: Application = world.app
    assert application.schedules == world.schedules


async def test_a_schedule_has_what_its_descriptor_says(world: World) -> None:
    schedule = await world.add()
    assert schedule == await world.schedules.get(schedule.id)
    assert (schedule.benchmark, schedule.cron, schedule.engine) == ("nightly", HOURLY, "process")
    assert (schedule.time_zone, schedule.submitter) == ("Europe/Berlin", "ann")
    assert (schedule.overlap, schedule.catch_up) == (Overlap.QUEUE, CatchUp.ALL)
    assert schedule.next_at == NOON + HOUR
    assert world.woken == 1
    assert await world.story(schedule.id) == ["ann submitted d.toml"]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (DESCRIPTOR.format(cron="single_run"), DescriptorInvalid, "info.scheduling"),
        (DESCRIPTOR.partition("[schedule]")[0].format(cron="single_run"), UserError, "single_run"),
        (DESCRIPTOR.format(cron="0 0 */29 2 MON#5"), UserError, "no calendar has"),
        (DESCRIPTOR.format(cron=HOURLY).replace("true", "$(SECRET)"), UserError, "SECRET"),
        (DESCRIPTOR.format(cron=HOURLY).replace("[ml]", "[data]\nx"), DescriptorInvalid, "found"),
    ],
)
async def test_what_would_never_run_is_refused_at_once(
    world: World, text: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await world.schedules.add(submission(text=text))
    assert await world.kept.next_due() is None


async def test_an_engine_that_is_not_there_is_refused_at_once(world: World) -> None:
    with pytest.raises(UserError, match="execution_engine"):
        await world.schedules.add(dataclasses.replace(submission(), engine="docker"))


async def test_the_same_key_makes_one_schedule(world: World) -> None:
    first = await world.add(key="k")
    world.clock.advance(HOUR)
    again = await world.schedules.add(submission(key="k"))
    assert again.schedule == first
    assert (await world.add(key="other")).id != first.id
    with pytest.raises(NotPossible, match="another descriptor"):
        await world.schedules.add(submission("0 1 * * *", key="k"))


async def test_the_same_key_at_the_same_moment_makes_one_schedule(world: World) -> None:
    """A client that heard nothing asks again while the store is still writing."""
    add = world.kept.add

    async def slowly(
        schedule: Schedule, document: Document, message: str, *, key: str | None = None
    ) -> Schedule:
        world.clock.advance(HOUR)
        await asyncio.sleep(0)
        return await add(schedule, document, message, key=key)

    world.kept.add = slowly  # type: ignore[method-assign]  # it waits for the disk
    first, second = await asyncio.gather(world.add(key="k"), world.add(key="k"))
    assert first == second


async def test_nobody_has_more_schedules_than_one_person_may(world: World) -> None:
    """Also when many are added at once; a repeated one is no further one."""
    settings = dataclasses.replace(world.app.settings, max_schedules_per_user=2)
    schedules = dataclasses.replace(world.app, settings=settings).schedules
    first = (await schedules.add(submission(key="k"))).schedule
    many = (schedules.add(submission(key=f"{number}")) for number in range(3))
    answers = await asyncio.gather(*many, return_exceptions=True)
    assert sum(isinstance(answer, TooMuch) for answer in answers) == 2
    with pytest.raises(TooMuch, match=r"ann has 2 schedules.*ANUBIS_MAX_SCHEDULES"):
        await schedules.add(submission())
    assert (await schedules.add(submission(key="k"))).schedule == first
    await schedules.add(dataclasses.replace(submission(), submitter="bob"))
    await schedules.remove(first.id, by="ann")
    await schedules.add(submission())


async def test_each_firing_is_a_run_with_the_schedule_as_its_family(world: World) -> None:
    schedule = await world.add()
    world.clock.advance(2 * HOUR)
    await world.fire()
    first, second = await world.fired(schedule.id)
    assert first.family == second.family == schedule.id
    assert (first.submitter, first.benchmark, first.engine) == ("ann", "nightly", "process")
    [event] = await world.runs.events(first.id)
    assert event.message.endswith("by its schedule, due at 2024-05-17 13:00 UTC")


async def test_the_plan_of_a_run_names_its_schedule_however_the_run_came_about(
    world: World,
) -> None:
    """Engines know only the plan, also after a restart."""
    schedule = await world.add()
    world.clock.advance(HOUR)
    await world.fire()
    await world.schedules.run_now(schedule.id, by="ben")
    told = [plans.from_json(await world.runs.plan(r.id)) for r in await world.fired(schedule.id)]
    assert [plan.schedule for plan in told] == [schedule.id, schedule.id]


async def test_a_firing_gets_the_environment_of_a_service_and_no_secrets(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_THE_SERVICE", "secret")
    schedule = await world.add()
    run = await world.schedules.run_now(schedule.id, by="ben")
    [unit] = plans.from_json(await world.runs.plan(run.id)).units
    assert "PATH" in unit.inherited
    assert "TOKEN_OF_THE_SERVICE" not in unit.inherited


async def test_a_firing_beyond_what_one_person_may_have_is_told_and_left_out(world: World) -> None:
    settings = dataclasses.replace(world.app.settings, max_active_per_user=1)
    world.app = dataclasses.replace(world.app, settings=settings)
    schedule = await world.add()
    world.clock.advance(2 * HOUR)
    await world.fire()
    await world.fire()
    assert len(await world.fired(schedule.id)) == 1
    assert "ann has 1 runs that have not ended" in (await world.story(schedule.id))[-1]


async def test_a_schedule_whose_engine_is_gone_goes_on_and_says_so(world: World) -> None:
    schedule = await world.add()
    world.app = dataclasses.replace(world.app, engines={})
    world.clock.advance(HOUR)
    await world.fire()
    assert "execution_engine: found 'process'" in (await world.story(schedule.id))[-1]
    assert (await world.schedules.get(schedule.id)).next_at == NOON + 2 * HOUR


async def test_a_descriptor_that_is_refused_by_now_is_told_and_the_schedule_goes_on(
    world: World,
) -> None:
    document = Document(name="old.toml", directory="/", content=b'spec_version = "0.0.1"\n')
    schedule = builders.a_schedule(document=document, next_at=NOON + HOUR)
    await world.kept.add(schedule, document, "made by an older version")
    world.clock.advance(HOUR)
    await world.fire()
    assert "old.toml:1:1: error: info" in (await world.story(schedule.id))[-1]
    assert (await world.schedules.get(schedule.id)).next_at == NOON + 2 * HOUR


async def test_the_next_firings_begin_with_the_next(world: World) -> None:
    schedule = await world.add()
    upcoming = await world.schedules.upcoming(schedule.id, count=3)
    assert list(upcoming) == [NOON + HOUR, NOON + 2 * HOUR, NOON + 3 * HOUR]


async def test_what_is_due_while_a_schedule_is_paused_is_dropped(world: World) -> None:
    schedule = await world.add()
    paused = await world.schedules.pause(schedule.id, by="ben")
    assert (paused.paused_at, paused.next_at) == (world.clock.now(), None)
    assert await world.schedules.upcoming(schedule.id, count=3) == ()
    world.clock.advance(5 * HOUR)
    await world.fire()
    resumed = await world.schedules.resume(schedule.id, by="cid")
    await world.fire()
    assert resumed.next_at == NOON + 6 * HOUR
    assert await world.fired(schedule.id) == []
    assert await world.story(schedule.id) == [
        "ann submitted d.toml",
        "paused by ben",
        "resumed by cid",
    ]


async def test_pausing_and_resuming_again_changes_nothing(world: World) -> None:
    schedule = await world.add()
    assert await world.schedules.resume(schedule.id, by="ben") == schedule
    paused = await world.schedules.pause(schedule.id, by="ben")
    assert await world.schedules.pause(schedule.id, by="cid") == paused


async def test_a_run_can_be_had_now_also_while_paused_and_while_another_goes_on(
    world: World,
) -> None:
    schedule = await world.add()
    await world.schedules.pause(schedule.id, by="ben")
    runs = [await world.schedules.run_now(schedule.id, by="ben") for _ in range(2)]
    assert [run.id for run in await world.fired(schedule.id)] == sorted(run.id for run in runs)
    stored = await world.schedules.get(schedule.id)
    assert (stored.fired, stored.last_run) == (2, runs[1].id)
    assert stored.is_paused


async def test_a_removed_schedule_leaves_its_runs(world: World) -> None:
    schedule = await world.add()
    run = await world.schedules.run_now(schedule.id, by="ben")
    await world.schedules.remove(schedule.id, by="ben")
    with pytest.raises(ScheduleNotFound):
        await world.schedules.get(schedule.id)
    assert (await world.runs.get(run.id)).family == schedule.id


async def test_a_runtime_is_needed_as_long_as_a_schedule_will_fire(world: World) -> None:
    async def needed() -> bool:
        return await pending.has_work(world.runs, world.kept)

    assert not await needed()
    schedule = await world.add()
    assert await needed()
    await world.schedules.pause(schedule.id, by="ben")
    assert not await needed()
    await world.schedules.resume(schedule.id, by="ben")
    world.woken = 0
    await world.app.ensure_runtime()
    assert world.woken == 1


def test_a_service_gives_runs_what_they_need_to_find_their_way() -> None:
    kept = {"PATH": "/bin", "HOME": "/h", "LANG": "C", "LC_ALL": "C", "TZ": "UTC", "USER": "u"}
    more = {"LOGNAME": "u", "SHELL": "/bin/sh"}
    secrets = {"AWS_SECRET_ACCESS_KEY": "k", "ANUBIS_TOKEN": "t", "PATHS": "x", "LD_PRELOAD": "y"}
    assert service_environment({**kept, **more, **secrets}) == {**kept, **more}
