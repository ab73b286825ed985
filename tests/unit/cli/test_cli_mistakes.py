"""What a newcomer gets wrong is answered with what to do, and nothing is done by half."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from anubis.domain.document import Document
from anubis.domain.errors import NotPossible, StoreUnusable, UserError
from anubis.domain.metric import MetricSource
from anubis.domain.problem import Problem
from anubis.entrypoints.cli import documents, edge
from anubis.entrypoints.cli.checks import home
from anubis.entrypoints.cli.checks.finding import Level
from anubis.entrypoints.cli.rendering import problems
from anubis.entrypoints.cli.rendering.problems import Verdict
from anubis.ports.run_store import Step
from anubis.settings.model import Settings
from anubis.testing import builders

from .conftest import World

Out = pytest.CaptureFixture[str]


def test_an_unknown_unit_is_answered_with_those_there_are(world: World, capfd: Out) -> None:
    run_id = world.add(builders.a_run(1))
    assert world.call("logs", "--unit", "nope") == 0  # nothing was written yet
    world.write(run_id, [("stdout", b"one\n")])
    with pytest.raises(UserError, match="no unit 'nope'; it has benchmark"):
        world.call("logs", "--unit", "nope")
    world.call("logs", "--unit", "benchmark")
    assert capfd.readouterr().out == "one\n"
    world.finish(run_id)
    with pytest.raises(UserError, match="no unit 'nope'"):
        world.call("logs", "--follow", "--unit", "nope")


def test_a_total_is_no_unknown_metric(world: World, capfd: Out) -> None:
    run_id = world.add(builders.a_run(1))
    total = builders.a_summary("cpu_seconds", source=MetricSource.RESOURCE, values=(0.5,))
    world.move(run_id, step=Step(run_id=run_id, summaries=[total]))
    world.call("metrics", "--series", "cpu_seconds")
    assert capfd.readouterr().out.splitlines()[1].split()[:2] == ["cpu_seconds", "1"]
    world.call("metrics", "--csv")
    assert capfd.readouterr() == ("at,unit,source,metric,units,value\n", "")
    assert world.call("metrics", "--csv", "--series", "cpu_seconds") == 0
    assert "one number, without samples" in capfd.readouterr().err


@pytest.mark.parametrize("verb", ["purge", "cancel"])
def test_a_run_named_twice_is_meant_once(world: World, capfd: Out, verb: str) -> None:
    kept, last = world.add(builders.a_run(1)), world.add(builders.a_run(2))
    if verb == "purge":
        world.finish(last)
    world.call(verb, "last", last, "last")
    assert capfd.readouterr().out.count(last) == 1
    assert world.do(lambda: world.store.get(kept)).cancel_requested_at is None


@pytest.mark.parametrize("length", [4, 36, None])
def test_a_run_is_repeated_by_any_name_that_is_no_file(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int | None
) -> None:
    monkeypatch.chdir(tmp_path)
    given = builders.a_document(b"one")
    run_id = world.add(builders.a_run(1, document=given), given)
    name = run_id[:length] if length else "last"

    def found() -> Document:
        answer: documents.Found = world.do(lambda: documents.find(world.application, name))
        return answer.document

    assert found().content == b"one"
    Path(name).write_bytes(b"a file of this name")
    assert found().content == b"a file of this name"


@pytest.mark.parametrize("name", ["nothing.toml", "ffff", "last"])
def test_what_is_neither_file_nor_run_is_told_so(world: World, name: str) -> None:
    with pytest.raises(UserError, match=f"{name}: there is no such file, and no run"):
        world.do(lambda: documents.find(world.application, name))


def test_init_says_how_to_overwrite(tmp_path: Path, capfd: Out) -> None:
    path = tmp_path / "d.toml"
    path.touch()
    assert edge.main(["init", str(path)]) == 2
    assert "--force overwrites it" in capfd.readouterr().err


@pytest.mark.parametrize("verb", ["validate", "run", "init"])
def test_a_file_name_cannot_take_over_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Out, verb: str
) -> None:
    monkeypatch.setenv("ANUBIS_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    edge.main([verb, "\x1b[2Jx.toml"])
    edge.main([verb, "\x1b[2Jx.toml", "--\x1b[2J"])
    said = capfd.readouterr()
    assert "[2Jx.toml" in said.out + said.err
    assert "\x1b" not in said.out + said.err


def test_a_verdict_shows_no_escapes() -> None:
    problem = Problem(file="\x1b[2J", line=1, column=1, field="", found="x", expected="y")
    for verdict in (
        Verdict(file="\x1b[2J", is_valid=False, problems=[problem]),
        Verdict(file="\x1b[2J", is_valid=True, problems=[]),
    ):
        assert "\x1b[2J" not in problems.page(verdict)


def test_the_doctor_goes_on_with_a_broken_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Out
) -> None:
    monkeypatch.setenv("ANUBIS_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text("slots = 'many")
    assert edge.main(["doctor", "--json"]) == 3
    found = {one["name"]: one for one in json.loads(capfd.readouterr().out)["findings"]}
    assert found["settings"]["level"] == "fail"
    assert str(tmp_path / "config.toml") in found["settings"]["advice"]
    assert found["leftovers"]["level"] == "ok"


def test_the_doctor_says_what_to_do_about_a_store_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Out
) -> None:
    monkeypatch.setenv("ANUBIS_HOME", str(tmp_path))
    (tmp_path / "anubis.sqlite").write_text("something else " * 100)
    assert edge.main(["doctor", "--json"]) == 3
    found = {one["name"]: one for one in json.loads(capfd.readouterr().out)["findings"]}
    assert found["store"]["level"] == "fail"
    assert f"move {tmp_path}/anubis.sqlite* away" in found["store"]["advice"]
    newer = home.store(Settings(home=tmp_path), StoreUnusable("written by a newer version"))
    assert (newer.level, "ANUBIS_HOME" in newer.advice) == (Level.FAIL, True)


def test_errors_of_a_run_that_ended_are_not_hidden_by_a_second_name(world: World) -> None:
    ended = world.add(builders.a_run(1))
    world.finish(ended)
    with pytest.raises(NotPossible):
        world.call("cancel", ended, "last")


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is hidden from root")
def test_a_home_of_somebody_else_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Out
) -> None:
    place = tmp_path / "home"
    place.mkdir(mode=0)
    monkeypatch.setenv("ANUBIS_HOME", str(place))
    assert edge.main(["list"]) == 3
    said = capfd.readouterr().err
    assert str(place) in said
    assert "set ANUBIS_HOME" in said
