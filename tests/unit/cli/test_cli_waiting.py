"""What the commands show of runs that wait."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click
import pytest

from anubis.domain.demand import Demand
from anubis.domain.run import RunState
from anubis.entrypoints.cli.rendering import listings, text
from anubis.entrypoints.cli.rendering.story import Story
from anubis.testing import builders
from anubis.testing.clock import NOON

from .conftest import World

Out = pytest.CaptureFixture[str]
ALONE = Demand(exclusive=True)
UNDER_WAY = (RunState.FETCHING, RunState.QUEUED, RunState.STARTING, RunState.RUNNING)
DESCRIPTOR = """
spec_version = "0.1.0"
info.description = "d"
info.priority = 5
ml.benchmark_code = "true"
"""


@pytest.fixture
def waiting(world: World) -> World:
    """One run under way, one behind it."""
    world.add(dataclasses.replace(builders.a_run(1), demand=ALONE))
    world.move(builders.a_run_id(1), *UNDER_WAY)
    world.add(dataclasses.replace(builders.a_run(2), demand=ALONE, priority=3))
    return world


def test_status_says_why_a_run_waits(waiting: World, capsys: Out) -> None:
    waiting.call("status", builders.a_run_id(2))
    page = capsys.readouterr().out
    assert "  waits for a free slot\n" in page
    assert "priority" in page


def test_status_of_a_run_under_way_says_nothing_of_waiting(waiting: World, capsys: Out) -> None:
    waiting.call("status", builders.a_run_id(1))
    assert "waits for" not in capsys.readouterr().out.replace("now QUEUED", "")


def test_list_says_why_runs_wait(waiting: World, capsys: Out) -> None:
    waiting.call("list")
    header, newest, oldest = capsys.readouterr().out.splitlines()
    assert header.endswith("why it waits")
    assert newest.endswith("waits for a free slot")
    assert "waits" not in oldest


def test_list_has_no_such_column_when_nothing_waits(world: World, capsys: Out) -> None:
    world.finish(world.add(builders.a_run(1)))
    world.call("list")
    assert "waits" not in capsys.readouterr().out


@pytest.mark.parametrize("command", ["status", "list"])
def test_the_json_says_it_too(waiting: World, capsys: Out, command: str) -> None:
    waiting.call(command, "--json")
    answer = json.loads(capsys.readouterr().out)
    run = answer["run"] if command == "status" else answer["runs"][0]
    assert run["waiting_for"] == "waits for a free slot"
    assert run["priority"] == 3
    assert run["demand"]["exclusive"] is True


@pytest.mark.parametrize(("options", "priority"), [([], 5), (["--priority", "-20"], -20)])
def test_the_priority_of_the_command_wins(
    world: World, tmp_path: Path, capsys: Out, options: list[str], priority: int
) -> None:
    file = tmp_path / "a.toml"
    file.write_text(DESCRIPTOR)
    world.call("submit", str(file), "--json", *options)
    assert json.loads(capsys.readouterr().out)["priority"] == priority


def test_names_and_reasons_share_what_room_there_is() -> None:
    """Neither is cut to a letter while the other is whole."""
    run = dataclasses.replace(builders.a_run(1), benchmark="a-rather-long-name-of-a-benchmark")
    why = {run.id: "waits for the engine to be free: it wants it for itself; 1 run is under way"}
    for width in range(60, 200):
        table = click.unstyle(listings.runs_table([run], NOON, why, width=width))
        assert max(map(text.width, table.splitlines())) <= width
        assert "a-rather-lo" in table


def test_a_reason_is_told_once_in_the_story() -> None:
    story = Story()
    [line] = story.waiting("waits for 1 GPU", NOON)
    assert line.endswith("waiting    waits for 1 GPU")
    assert story.waiting("waits for 1 GPU", NOON) == []
    assert story.waiting("", NOON) == []
    assert len(story.waiting("waits for 1 GPU; 1 run ahead", NOON)) == 1
