"""``docs/reference/cli.md`` says what the program does, no more and no less."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import click
import pytest

from anubis.entrypoints.cli import legacy, verbs
from anubis.entrypoints.cli.lazy import group
from anubis.stages.presentation import access_shapes, dataset_shapes, plan_shapes, shapes

PAGE = (Path(__file__).parents[3] / "docs/reference/cli.md").read_text("utf-8")
VERBS = [name for _, section in verbs.SECTIONS for name, _, _ in section]
SHAPES = {
    "Status": shapes.StatusShape,
    "Fingerprint": shapes.EnvironmentShape,
    "Snapshot": shapes.SnapshotShape,
    "Run": shapes.RunShape,
    "Outcome": shapes.OutcomeShape,
    "Event": shapes.EventShape,
    "Metric": shapes.MetricShape,
    "Line": shapes.LineShape,
    "Document": shapes.DocumentShape,
    "Problem": shapes.ProblemShape,
    "Schedule": shapes.ScheduleShape,
    "Plan": plan_shapes.PlanShape,
    "Unit": plan_shapes.UnitShape,
    "Dataset": dataset_shapes.DatasetShape,
    "Token": access_shapes.TokenShape,
}


def command(path: str) -> click.Command:
    """The command of a verb, or of a verb and what it is asked to do: ``schedule list``."""
    found: click.Command | None = group
    for word in path.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None
    return found


def paths() -> list[str]:
    """Every command, those of a group after the group itself."""
    found = []
    for verb in VERBS:
        found.append(verb)
        if isinstance(one := command(verb), click.Group):
            found += [f"{verb} {name}" for name in one.commands]
    return found


PATHS = paths()


def sections() -> dict[str, str]:
    parts = re.split(r"^#{2,4} +(.*)$", PAGE, flags=re.MULTILINE)
    return {title.strip("`"): body for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def documented(path: str) -> tuple[list[str], str]:
    """The words after the command in its title, and the text below."""
    for title, body in sections().items():
        if title.startswith(f"anubis {path}") and _path(title) == path:
            return title.removeprefix(f"anubis {path}").split(), body
    pytest.fail(f"anubis {path} is not documented")


def _path(title: str) -> str:
    """The command in a title: the words before its arguments, which are not in small letters."""
    words = title.split()[1:]
    return " ".join(itertools.takewhile(lambda word: re.fullmatch("[a-z-]+", word), words))


def test_every_command_is_documented_and_no_other() -> None:
    titles = [_path(title) for title in sections() if title.startswith("anubis ")]
    assert titles == PATHS


@pytest.mark.parametrize("name", PATHS)
def test_every_option_is_documented_and_no_other(name: str) -> None:
    _, body = documented(name)
    rows = re.findall(r"^\| (`-[^|]*) \|", body, flags=re.MULTILINE)
    written = {option for row in rows for option in re.findall(r"`(-[^`]+)`", row)}
    options = [one for one in command(name).params if isinstance(one, click.Option)]
    assert written == {opt for one in options if not one.hidden for opt in one.opts}


@pytest.mark.parametrize("name", PATHS)
def test_every_argument_is_documented(name: str) -> None:
    words, _ = documented(name)
    one = command(name)
    arguments = [argument for argument in one.params if isinstance(argument, click.Argument)]
    expected = ["COMMAND"] if isinstance(one, click.Group) else [one.metavar for one in arguments]
    assert words == expected


@pytest.mark.parametrize("title", SHAPES)
def test_every_json_field_is_documented_in_order(title: str) -> None:
    fields = list(SHAPES[title].__annotations__)
    assert re.findall(r"`([a-z_0-9]+)`", sections()[title])[: len(fields)] == fields


def test_every_original_flag_is_documented_and_no_other() -> None:
    body = sections()["The original client's flags"]
    table = re.findall(r"^\| (`-[^|]*) \|", body, flags=re.MULTILINE)
    declined = body[body.index("understood and declined") :]
    written = re.findall(r"`(--?[a-z][a-z*-]*)`", " ".join([*table, declined]))
    assert sorted(written) == sorted(legacy.FLAGS)
    said = set(re.findall(r"`(--?[a-z-]+)`", declined))
    assert said == {name for name, flag in legacy.FLAGS.items() if flag.declined}
