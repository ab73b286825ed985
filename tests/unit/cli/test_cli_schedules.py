"""Schedules on the command line, over memory stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from anubis.domain.errors import (
    DescriptorInvalid,
    RunNotFound,
    ScheduleAmbiguous,
    ScheduleNotFound,
    UserError,
)
from anubis.domain.schedule import Schedule, ScheduleId
from anubis.entrypoints.cli import edge
from anubis.entrypoints.cli.rendering import schedules as rendering
from anubis.ports.run_reader import RunQuery
from anubis.ports.schedule_store import ScheduleQuery
from anubis.stages.presentation import shapes
from anubis.testing import builders
from anubis.testing.clock import NOON

from .conftest import World

Out = pytest.CaptureFixture[str]

DESCRIPTOR = """\
spec_version = "0.1.0"
info.description = "d"
info.scheduling = "0 3 * * *"
info.labels.task_name = "nightly"
ml.benchmark_code = "true"
schedule.time_zone = "Europe/Berlin"
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "nightly.toml"
    path.write_text(DESCRIPTOR)
    return str(path)


def stored(world: World) -> list[Schedule]:
    return list(world.do(lambda: world.schedules.page(ScheduleQuery())))


def submitted(world: World, file: str, capfd: Out) -> ScheduleId:
    assert world.call("submit", file) == 0
    return ScheduleId(capfd.readouterr().out.strip())


def answer(capfd: Out) -> Any:
    return json.loads(capfd.readouterr().out)


def test_submitting_a_schedule_prints_its_id_and_tells_when_it_fires(
    world: World, file: str, capfd: Out
) -> None:
    assert world.call("submit", file, "--watch") == 0
    said = capfd.readouterr()
    [schedule] = stored(world)
    assert said.out == f"{schedule.id}\n"
    assert "nightly fires by '0 3 * * *' in Europe/Berlin" in said.err
    assert "2024-05-18 03:00 CEST\n  2024-05-19 03:00 CEST" in said.err
    assert "no end to wait for" in said.err
    assert list(world.do(lambda: world.store.page(RunQuery()))) == []


def test_a_schedule_is_submitted_as_json_too(world: World, file: str, capfd: Out) -> None:
    world.call("submit", file, "--json")
    assert answer(capfd) == shapes.schedule_shape(stored(world)[0])


def test_the_original_spelling_submits_a_schedule_too(
    world: World, file: str, capfd: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge, "_run", lambda words: world.call(*words))
    assert edge.main(["--submit", file, "--watch", "--status"]) == 0
    [schedule] = stored(world)
    assert capfd.readouterr().out == f"{schedule.id}\n"


def test_a_run_of_a_schedule_that_is_repeated_runs_once(
    world: World, file: str, capfd: Out
) -> None:
    schedule_id = submitted(world, file, capfd)
    world.call("schedule", "run", schedule_id)
    run_id = capfd.readouterr().out.strip()
    world.call("submit", run_id)
    assert len(stored(world)) == 1
    assert len(world.do(lambda: world.store.page(RunQuery()))) == 2


def test_a_bad_schedule_is_told_like_any_other_problem(world: World, file: str) -> None:
    Path(file).write_text(DESCRIPTOR.replace("Berlin", "Berln"))
    with pytest.raises(DescriptorInvalid, match="did you mean 'Europe/Berlin'"):
        world.call("submit", file)


def test_schedules_are_listed_newest_first_with_their_next_firing(
    world: World, file: str, capfd: Out
) -> None:
    assert world.call("schedule", "list") == 0
    assert capfd.readouterr().out == "no schedules\n"
    schedule_id = submitted(world, file, capfd)
    world.call("schedule", "list")
    table = capfd.readouterr().out
    assert f"{schedule_id}  nightly    0 3 * * *  Europe/Berlin  in 13 h" in table
    world.call("schedule", "list", "--ids")
    assert capfd.readouterr().out == f"{schedule_id}\n"
    world.call("schedule", "list", "--json")
    assert answer(capfd) == {"schedules": [shapes.schedule_shape(stored(world)[0])]}


def test_more_schedules_than_a_page_are_listed(world: World, capfd: Out) -> None:
    async def add() -> None:
        for number in range(600):
            await world.schedules.add(builders.a_schedule(number), builders.a_document(), "made")

    world.do(add)
    world.call("schedule", "list", "--ids", "--limit", "590")
    ids = capfd.readouterr().out.split()
    assert len(ids) == 590
    assert ids == sorted(ids, reverse=True)


@pytest.mark.parametrize("name", ["nightly", "0"])
def test_a_schedule_is_shown_by_any_of_its_names(
    world: World, file: str, capfd: Out, name: str
) -> None:
    schedule_id = submitted(world, file, capfd)
    world.call("schedule", "run", name)
    world.call("schedule", "show", name)
    page = capfd.readouterr().out
    assert schedule_id in page
    assert "skip: a firing is left out" in page
    assert "2024-05-18 03:00 CEST" in page
    assert "asked for run" in page
    world.call("schedule", "show", name, "--json")
    detail = answer(capfd)
    assert detail["upcoming"][:2] == ["2024-05-18T01:00:00.000000Z", "2024-05-19T01:00:00.000000Z"]
    assert len(detail["upcoming"]) == 5


def test_only_the_last_events_are_shown(world: World, file: str, capfd: Out) -> None:
    schedule_id = submitted(world, file, capfd)
    for _ in range(15):
        world.call("schedule", "pause", schedule_id)
        world.call("schedule", "resume", schedule_id)
    capfd.readouterr()
    world.call("schedule", "show", schedule_id)
    page = capfd.readouterr().out
    assert "submitted" in page
    assert "nightly.toml" not in page
    assert page.count("paused by") == 10


def test_pausing_and_resuming_say_what_comes_next(world: World, file: str, capfd: Out) -> None:
    schedule_id = submitted(world, file, capfd)
    world.call("schedule", "pause", "nightly")
    assert capfd.readouterr().out == f"{schedule_id} paused\n"
    world.call("schedule", "list")
    assert "paused" in capfd.readouterr().out
    world.call("schedule", "resume", "nightly")
    said = capfd.readouterr().out
    assert said == f"{schedule_id} resumed, fires next at 2024-05-18 03:00 CEST\n"
    world.call("schedule", "pause", "nightly", "--json")
    assert answer(capfd)["paused_at"] == "2024-05-17T12:00:00.000000Z"


def test_a_run_now_belongs_to_the_family_of_the_schedule(
    world: World, file: str, capfd: Out
) -> None:
    schedule_id = submitted(world, file, capfd)
    world.call("schedule", "run", "nightly", "--json")
    run = answer(capfd)
    assert run["family"] == schedule_id
    world.add(builders.a_run(1))
    for family in (schedule_id, "nightly"):
        world.call("list", "--family", family, "--ids")
        assert capfd.readouterr().out.split() == [run["id"]]
    world.call("list", "--family", "a sweep", "--ids")
    assert capfd.readouterr().out == ""


def test_the_family_of_a_name_that_two_schedules_have_is_not_guessed(
    world: World, file: str, capfd: Out
) -> None:
    ids = [submitted(world, file, capfd) for _ in range(2)]
    for command in (["list", "--family"], ["schedule", "show"], ["status"]):
        with pytest.raises(ScheduleAmbiguous, match=ids[0]):
            world.call(*command, "nightly")


def test_a_removed_schedule_is_gone(world: World, file: str, capfd: Out) -> None:
    schedule_id = submitted(world, file, capfd)
    world.call("schedule", "remove", "nightly")
    assert capfd.readouterr().out == f"{schedule_id} removed\n"
    with pytest.raises(ScheduleNotFound):
        world.call("schedule", "show", schedule_id)


def test_nothing_is_removed_if_one_of_the_names_is_unknown(
    world: World, file: str, capfd: Out
) -> None:
    submitted(world, file, capfd)
    with pytest.raises(ScheduleNotFound):
        world.call("schedule", "remove", "nightly", "nothing")
    assert len(stored(world)) == 1


def test_canceling_what_submit_gave_removes_the_schedule(
    world: World, file: str, capfd: Out
) -> None:
    schedule_id = submitted(world, file, capfd)
    with pytest.raises(RunNotFound):  # then nothing is done
        world.call("cancel", schedule_id, "nothing")
    world.call("cancel", schedule_id)
    assert capfd.readouterr().out == f"{schedule_id} removed\n"
    assert stored(world) == []


@pytest.mark.parametrize("verb", ["cancel", "purge", "status"])
def test_a_schedule_by_a_shorter_name_is_no_run(
    world: World, file: str, capfd: Out, verb: str
) -> None:
    submitted(world, file, capfd)
    with pytest.raises(UserError, match="nightly is a schedule, not a run"):
        world.call(verb, "nightly")
    assert len(stored(world)) == 1
    with pytest.raises(RunNotFound):
        world.call(verb, "nothing")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_table_fits_the_terminal(width: int) -> None:
    long = builders.a_schedule(benchmark="a-benchmark-with-a-long-name " * 3, next_at=NOON)
    table = rendering.schedules_table([long], NOON, width=width)
    assert all(len(line) <= width for line in click.unstyle(table).splitlines())


def test_a_schedule_that_never_fires_again_says_so() -> None:
    assert "never" in rendering.schedules_table([builders.a_schedule()], NOON, width=None)


def test_a_time_zone_of_another_machine_is_shown_in_utc() -> None:
    schedule = builders.a_schedule(next_at=NOON)
    object.__setattr__(schedule, "time_zone", "Mars/Olympus")
    assert rendering.moments(schedule, [NOON]) == ["2024-05-17 12:00 UTC"]
