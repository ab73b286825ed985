"""``docs/reference/cli.md`` says what the program does, no more and no less."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from anubis.entrypoints.cli import legacy, verbs
from anubis.entrypoints.cli.lazy import group
from anubis.stages.presentation import shapes

PAGE = (Path(__file__).parents[3] / "docs/reference/cli.md").read_text("utf-8")
NAMES = [name for _, section in verbs.SECTIONS for name, _, _ in section]
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
}


def sections() -> dict[str, str]:
    parts = re.split(r"^#{2,3} +(.*)$", PAGE, flags=re.MULTILINE)
    return {title.strip("`"): body for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def command(name: str) -> click.Command:
    found = group.get_command(click.Context(group), name)
    assert found is not None
    return found


def documented(name: str) -> tuple[str, str]:
    for title, body in sections().items():
        if title.split()[:2] == ["anubis", name]:
            return title, body
    pytest.fail(f"anubis {name} is not documented")


def test_every_command_is_documented_and_no_other() -> None:
    titles = [title.split()[1] for title in sections() if title.startswith("anubis ")]
    assert titles == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_documented_and_no_other(name: str) -> None:
    _, body = documented(name)
    rows = re.findall(r"^\| (`-[^|]*) \|", body, flags=re.MULTILINE)
    written = {option for row in rows for option in re.findall(r"`(-[^`]+)`", row)}
    options = [one for one in command(name).params if isinstance(one, click.Option)]
    assert written == {opt for one in options if not one.hidden for opt in one.opts}


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_is_documented(name: str) -> None:
    title, _ = documented(name)
    arguments = [one for one in command(name).params if isinstance(one, click.Argument)]
    assert title.split()[2:] == [one.metavar for one in arguments]


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
