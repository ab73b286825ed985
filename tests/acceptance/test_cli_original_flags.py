"""The original client's spelling, against the installed command."""

from __future__ import annotations

import re

import pytest

import anubis

from .conftest import Home

pytestmark = pytest.mark.acceptance
COLUMNS = ("embedded", "remote")

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PROGRAM = "echo loss=0.5\necho aside >&2\n"


@pytest.fixture(scope="module")
def run_id(shared_home: Home) -> str:
    name = shared_home.descriptor(PROGRAM)
    result = shared_home.call("--submit", name, "--watch", "--status", "--terminate", "--verbose")
    assert result.returncode == 0, result.stderr
    text = result.stdout.decode()
    assert "SUCCEEDED" in text
    first = text.splitlines()[0]
    assert UUID.fullmatch(first)
    return first


def test_status_and_results_default_to_the_last_run(shared_home: Home, run_id: str) -> None:
    assert run_id in shared_home.ask("--status")
    assert run_id in shared_home.ask("--status", run_id)
    assert shared_home.ask("--results") == "loss=0.5\n"
    assert shared_home.ask("--result", run_id) == "loss=0.5\n"


def test_the_last_id_and_the_history_are_printed(shared_home: Home, run_id: str) -> None:
    assert shared_home.ask("--last-action-id") == f"{run_id}\n"
    assert shared_home.ask("--history").startswith(f"{run_id} : ")


def test_the_descriptor_is_shown_and_written(shared_home: Home, run_id: str) -> None:
    given = (shared_home.folder / "bench.toml").read_text()
    assert shared_home.ask("--show-descriptor") == given
    assert shared_home.ask("--write-descriptor", run_id) == "descriptor.toml\n"
    assert (shared_home.folder / "descriptor.toml").read_text() == given


@pytest.mark.parametrize("flag", ["--version", "-v", "--banner"])
def test_the_version_is_ours(shared_home: Home, flag: str) -> None:
    assert shared_home.ask(flag) == f"anubis {anubis.__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--upgrade"], "--upgrade: this client is a Python package"),
        (["--script", "x.py", "--submit", "bench.toml"], "x.py: found nothing, expected a file"),
        (["--resutls"], "did you mean --results?"),
        (["--submit"], "--submit: a value is missing"),
        (["--cancel", "0000"], "no run has an id"),
    ],
)
def test_what_cannot_be_done_is_said(
    shared_home: Home, run_id: str, words: list[str], said: str
) -> None:
    result = shared_home.call(*words)
    assert result.returncode == 2
    assert said in result.stderr.decode()
    assert result.stdout == b""


def test_submit_with_status_shows_both_and_an_id_is_submitted_again(home: Home) -> None:
    name = home.descriptor(PROGRAM)
    text = home.ask("--submit", name, "--status")
    first = text.splitlines()[0]
    assert UUID.fullmatch(first)
    assert text.count(first) == 2
    again = home.ask("--submit", first).strip()
    assert again != first
    home.wait_for("SUCCEEDED", "status", again)


def test_a_run_is_aborted_and_purged(home: Home) -> None:
    run_id = home.ask("--submit", home.descriptor("sleep 60\n")).strip()
    assert "being canceled" in home.ask("--abort", run_id)
    home.wait_for("CANCELED", "--status")
    assert home.ask("--cancel*", run_id) == f"{run_id} purged\n"
    assert home.ask("--last-action-id") == ""
