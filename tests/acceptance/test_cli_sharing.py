"""Several runs on one machine: what shares it, what has it for itself, and why a run waits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Home

pytestmark = pytest.mark.acceptance

UNTIL_GO = """\
echo "begin {name}" >> trace
while [ ! -e go-{name} ]; do sleep 0.05; done
echo "end {name}" >> trace
"""


@pytest.fixture
def wide_home(home: Home) -> Home:
    home.environment["ANUBIS_SLOTS"] = "2"
    home.environment["ANUBIS_CPUS"] = "2"
    return home


def submit(home: Home, name: str, *options: str, hardware: str = "") -> str:
    """Hand in a program that ends when its file ``go-NAME`` is there."""
    file = home.descriptor(UNTIL_GO.format(name=name), name)
    if hardware:
        with (home.folder / file).open("a") as descriptor:
            descriptor.write(f"[hardware]\n{hardware}\n")
    return home.ask("submit", file, *options).strip()


def go(home: Home, run_id: str, name: str) -> None:
    Path(home.folder, f"go-{name}").touch()
    home.wait_for('"state": "SUCCEEDED"', "status", run_id, "--json")


def test_an_exclusive_run_is_alone_and_everybody_knows_why_they_wait(wide_home: Home) -> None:
    home = wide_home
    first, second = submit(home, "first"), submit(home, "second")
    for run_id in (first, second):
        home.wait_for('"state": "RUNNING"', "status", run_id, "--json")
    alone = submit(home, "alone", hardware="exclusive = true")
    home.wait_for("QUEUED", "status", alone)
    later = submit(home, "later")

    wants_all = "waits for the engine to be free: it wants it for itself; 2 runs are under way"
    assert wants_all in home.ask("status", alone)
    assert "waits for a free slot; 1 run ahead" in home.ask("list", "--benchmark", "later")

    go(home, first, "first")
    run = json.loads(home.wait_for("QUEUED", "status", later, "--json"))["run"]
    assert run["waiting_for"] == "waits for its turn; 1 run ahead"
    assert "1 run is under way" in home.ask("status", alone)

    go(home, second, "second")
    home.wait_for('"state": "RUNNING"', "status", alone, "--json")
    assert "a run has it for itself" in home.ask("status", later)
    go(home, alone, "alone")
    go(home, later, "later")
    trace = (home.folder / "trace").read_text().splitlines()
    assert trace[-4:] == ["begin alone", "end alone", "begin later", "end later"]


def test_a_later_run_with_a_higher_priority_starts_first(wide_home: Home) -> None:
    home = wide_home
    busy = submit(home, "busy", hardware="exclusive = true")
    home.wait_for('"state": "RUNNING"', "status", busy, "--json")
    usual = submit(home, "usual", hardware="exclusive = true")
    urgent = submit(home, "urgent", "--priority", "10", hardware="exclusive = true")
    go(home, busy, "busy")
    go(home, urgent, "urgent")
    go(home, usual, "usual")
    trace = (home.folder / "trace").read_text().splitlines()
    assert [line for line in trace if line.startswith("begin")] == [
        "begin busy",
        "begin urgent",
        "begin usual",
    ]


def test_what_the_machine_has_not_is_refused_at_once(wide_home: Home) -> None:
    file = wide_home.descriptor("true", "giant")
    with (wide_home.folder / file).open("a") as descriptor:
        descriptor.write("[hardware]\ncpus = 8\n")
    result = wide_home.call("submit", file)
    assert result.returncode == 2
    assert b"hardware.cpus: found 8, expected at most 2" in result.stderr
