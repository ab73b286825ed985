"""Code beside a descriptor: it must be here, it is remembered, and it stays while it is needed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from anubis.adapters.engine.process.capabilities import PROCESS
from anubis.adapters.log_store.memory import MemoryLogStore
from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.adapters.schedule_store.memory import MemoryScheduleStore
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.adapters.series_store.memory import MemorySeriesStore
from anubis.bootstrap import firing, scripting
from anubis.bootstrap.application import Submission
from anubis.bootstrap.local import LocalApplication
from anubis.domain import plan as plans
from anubis.domain.document import Document
from anubis.domain.errors import DescriptorInvalid, NotPossible, UserError
from anubis.domain.run import Run, RunId, RunState, WorkerId
from anubis.ports.run_reader import RunQuery
from anubis.runtime.supervising import Supervisor
from anubis.settings.model import Settings
from anubis.testing import builders
from anubis.testing.clock import ManualClock
from anubis.testing.contracts.script_store import Archive, a_file, an_archive

DAY = timedelta(days=1)
ARCHIVE = an_archive(a_file())
OTHER = an_archive(a_file(content=b"other"))
MISSING = f"{'0' * 64}.tar"
TOML = """\
spec_version = "0.1.0"
[info]
description = "d"
{more}
[ml]
benchmark_code = "sh -c 'python3 $BAI_SCRIPTS_PATH/src/main.py'"
"""
PLAIN = TOML.format(more="")
YEARLY = TOML.format(more='scheduling = "@yearly"\n[schedule]\noverlap = "queue"')
OWN = f'{PLAIN}[ml.script]\nscript = "{ARCHIVE.name}"\n'


class World:
    """An installation whose archives nobody uses for more than ten days go."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.scripts = MemoryScriptStore(self.clock)
        self.app = LocalApplication(
            settings=Settings(home=Path("/nowhere"), scripts_days=10),
            clock=self.clock,
            store=MemoryRunStore(),
            schedule_store=MemoryScheduleStore(),
            logs=MemoryLogStore(),
            series=MemorySeriesStore(),
            script_store=self.scripts,
            engines={"process": PROCESS},
            wake_runtime=self._wake,
        )

    async def _wake(self) -> None:
        """There is no runtime to wake."""

    async def put(self, archive: Archive = ARCHIVE) -> None:
        await self.app.scripts.put(archive.name, archive.parts())

    async def submit(self, script: str, toml: str = PLAIN, key: str | None = None) -> Run:
        return (await self.app.submit(a_submission(script, toml, key))).run

    async def runs(self) -> Sequence[Run]:
        return list(await self.app.store.page(RunQuery()))

    async def planned(self, run: Run) -> tuple[str, ...]:
        return plans.scripts(plans.from_json(await self.app.store.plan(run.id)))


def a_submission(script: str, toml: str = PLAIN, key: str | None = None) -> Submission:
    document = Document(name="a.toml", directory="", content=toml.encode(), script=script)
    return Submission(document=document, submitter="ann", environment={}, key=key)


@pytest.fixture
def world() -> World:
    return World()


async def test_a_run_gets_the_code_that_was_submitted_with_it(world: World) -> None:
    await world.put()
    run = await world.submit(ARCHIVE.name)
    assert await world.planned(run) == (ARCHIVE.name,)
    [event] = await world.app.store.events(run.id)
    assert event.message.endswith(f"for the process engine with the code {ARCHIVE.name[:12]}")


async def test_code_is_remembered_when_the_plan_is_gone(world: World) -> None:
    await world.put()
    run = await world.submit(ARCHIVE.name)
    assert (await world.app.store.document(run.id)).script == ARCHIVE.name


@pytest.mark.parametrize("name", [MISSING, "../../etc/passwd", "train.py"])
async def test_code_that_is_not_here_is_named_and_no_run_is_made(world: World, name: str) -> None:
    await world.put()
    with pytest.raises(UserError, match=f"script archive.*{name}"):
        await world.submit(name)
    assert await world.runs() == []


async def test_a_schedule_needs_its_code_from_the_start(world: World) -> None:
    with pytest.raises(UserError, match=MISSING):
        await world.app.schedules.add(a_submission(MISSING, YEARLY))
    assert await world.app.schedule_store.next_due() is None


async def test_a_descriptor_with_code_of_its_own_takes_no_other(world: World) -> None:
    await world.put()
    with pytest.raises(
        UserError, match=r"toml:\d+:\d+: ml\.script: .*--script.*expected one of them"
    ):
        await world.submit(ARCHIVE.name, OWN)
    assert await world.planned(await world.submit("", OWN)) == (ARCHIVE.name,)


async def test_the_same_key_gives_the_same_run_and_never_other_code(world: World) -> None:
    await world.put()
    await world.put(OTHER)
    first = await world.submit(ARCHIVE.name, key="k")
    assert await world.submit(ARCHIVE.name, key="k") == first
    with pytest.raises(NotPossible, match=f"'k' was used for other code: found {OTHER.name}"):
        await world.submit(OTHER.name, key="k")
    with pytest.raises(NotPossible, match="found none, expected"):
        await world.submit("", key="k")


async def test_the_same_key_gives_the_same_schedule_and_never_other_code(world: World) -> None:
    await world.put()
    await world.put(OTHER)
    add = world.app.schedules.add
    first = await add(a_submission(ARCHIVE.name, YEARLY, "k"))
    assert (await add(a_submission(ARCHIVE.name, YEARLY, "k"))).schedule == first.schedule
    with pytest.raises(NotPossible, match="other code"):
        await add(a_submission(OTHER.name, YEARLY, "k"))


async def fire(world: World) -> None:
    async with Supervisor() as supervisor:
        await firing.firer(world.app, supervisor).turn()


async def test_every_firing_has_the_code_of_its_schedule_however_seldom(world: World) -> None:
    await world.put()
    schedule = (await world.app.schedules.add(a_submission(ARCHIVE.name, YEARLY))).schedule
    for _ in range(2):
        for _ in range(40):
            world.clock.advance(10 * DAY)
            await world.app.scripts.forget_unused(world.clock.now() - DAY)
        await fire(world)
    now = await world.app.schedules.run_now(schedule.id, by="ann")
    runs = await world.runs()
    assert len(runs) == 3
    assert now in runs
    assert {(await world.app.store.document(run.id)).script for run in runs} == {ARCHIVE.name}
    assert [await world.planned(run) for run in runs] == [(ARCHIVE.name,)] * 3


async def test_a_firing_whose_code_is_gone_is_told_and_makes_no_run(world: World) -> None:
    await world.put()
    schedule = (await world.app.schedules.add(a_submission(ARCHIVE.name, YEARLY))).schedule
    world.clock.advance(400 * DAY)
    await world.scripts.forget_unused(world.clock.now())  # somebody emptied the folder by hand
    await fire(world)
    assert await world.runs() == []
    assert ARCHIVE.name in (await world.app.schedules.get(schedule.id)).last_note


async def test_a_firing_counts_as_a_use(world: World) -> None:
    await world.put()
    schedule = (await world.app.schedules.add(a_submission(ARCHIVE.name, YEARLY))).schedule
    world.clock.advance(20 * DAY)
    await world.app.schedules.run_now(schedule.id, by="ann")
    await world.app.schedules.remove(schedule.id, by="ann")
    assert await world.scripts.forget_unused(world.clock.now() - DAY) == 0


async def test_code_stays_for_a_run_that_waits_and_goes_after_its_end(world: World) -> None:
    await world.put()
    run = await world.submit(ARCHIVE.name)
    world.clock.advance(100 * DAY)
    assert await world.app.scripts.forget_unused(world.clock.now() - DAY) == 0
    await world.app.store.request_cancel(run.id, now=world.clock.now(), by="ann")
    await _end(world, run.id)
    world.clock.advance(2 * DAY)
    assert await world.app.scripts.forget_unused(world.clock.now() - DAY) == 1


async def _end(world: World, run_id: RunId) -> None:
    worker, now = WorkerId("w"), world.clock.now()
    states = [RunState.SUBMITTED]
    await world.app.store.lease(worker, now=now, duration=DAY, states=states, limit=1)
    await world.app.store.apply(worker, builders.a_step(run_id, RunState.CANCELED))


async def test_old_code_makes_room_when_new_code_comes_also_without_a_service(
    world: World,
) -> None:
    await world.put()
    world.clock.advance(11 * DAY)
    await world.put(OTHER)
    assert not await world.scripts.has(ARCHIVE.name)
    assert await world.scripts.has(OTHER.name)


async def test_nothing_is_packed_or_kept_for_a_descriptor_that_is_wrong(
    world: World, tmp_path: Path
) -> None:
    wrong = dataclasses.replace(a_submission("").document, content=b"nonsense")
    with pytest.raises(DescriptorInvalid):
        await scripting.brought(world.app, wrong, str(tmp_path / "nothing"))
    own = dataclasses.replace(wrong, content=OWN.encode())
    with pytest.raises(UserError, match=r"^ml\.script: "):
        await scripting.brought(world.app, own, str(tmp_path / "nothing"))


async def test_the_document_that_was_given_stays_as_it_is(world: World, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("1")
    document = a_submission("").document
    with_code, code = await scripting.brought(world.app, document, str(tmp_path / "train.py"))
    assert with_code == dataclasses.replace(document, script=code.name)
    assert with_code.sha == document.sha
    assert await world.scripts.has(code.name)
