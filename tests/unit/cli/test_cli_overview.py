"""``anubis --help`` is quick, complete, and the same by both ways."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from anubis.entrypoints.cli import lazy, overview, verbs

HEAVY = ("asyncio", "rich", "pydantic", "numpy", "click", "sqlite3", "structlog", "dataclasses")
ALL = [verb for _, section in verbs.SECTIONS for verb in section] + list(verbs.HIDDEN)

CHILD = """
import sys, io, json
sys.argv = ["anubis", *sys.argv[1:]]
out, sys.stdout = sys.stdout, io.StringIO()
from anubis.__main__ import main
code = main()
json.dump({"code": code, "text": sys.stdout.getvalue(), "modules": sorted(sys.modules)}, out)
"""


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["version"], ["--version"], ["-v"], []])
def test_quick_answers_import_nothing_heavy(words: list[str]) -> None:
    child = subprocess.run(
        [sys.executable, "-c", CHILD, *words], capture_output=True, text=True, check=True
    )
    answer = json.loads(child.stdout)
    assert answer["code"] == 0
    assert answer["text"].startswith(("Usage: anubis", "anubis "))
    assert not set(HEAVY) & set(answer["modules"])


def test_looking_at_a_run_imports_neither_rich_nor_pydantic_nor_numpy(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", CHILD, "status"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "ANUBIS_HOME": str(tmp_path)},
    )
    answer = json.loads(child.stdout)
    assert answer["code"] == 2  # there are no runs
    assert not {"rich", "pydantic", "numpy", "re2"} & set(answer["modules"])


def test_the_quick_help_is_the_text_of_clicks_own_group() -> None:
    context = click.Context(lazy.group, info_name="anubis")
    assert lazy.group.get_help(context) + "\n" == overview.help_page()


def test_the_quick_version_is_the_text_of_clicks_own_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lazy.group.main(["--version"], prog_name="anubis", standalone_mode=False)
    assert capsys.readouterr().out == overview.version_line()


def test_the_page_names_every_option_of_the_group() -> None:
    for parameter in lazy.group.get_params(click.Context(lazy.group)):
        assert ", ".join(parameter.opts) in overview.help_page()


@pytest.mark.parametrize("verb", ALL, ids=lambda verb: verb[0])
def test_each_line_of_the_table_is_the_commands_own_help(verb: tuple[str, str, str]) -> None:
    name, _, does = verb
    command = lazy.group.get_command(click.Context(lazy.group), name)
    assert command is not None
    assert command.name == name
    assert (command.help or "").partition("\n\n")[0] == does


def test_hidden_verbs_are_not_shown() -> None:
    assert "runtime" not in lazy.group.list_commands(click.Context(lazy.group))
    assert "\n  runtime" not in overview.help_page()


def test_the_page_fits_eighty_columns() -> None:
    assert max(map(len, overview.help_page().splitlines())) <= 80


@pytest.mark.parametrize("words", [["run"], ["--helpp"], ["--submit", "x"], ["help", "run"]])
def test_other_words_are_left_to_the_commands(words: list[str]) -> None:
    assert overview.answer(words) is None
