"""Looking at runs: every command that reads, over runs that really happened."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from pathlib import Path

import pytest

from .conftest import ANUBIS, PATIENCE, Home

pytestmark = pytest.mark.acceptance
COLUMNS = ("embedded", "remote")

GOOD = r"""
for n in 1 2 3; do echo "epoch $n loss=0.$n"; done
printf 'binary \377\000 garbage\n' >&2
"""


@pytest.fixture(scope="module")
def ids(shared_home: Home) -> list[str]:
    """A good run, a bad one, and one with much output, in this order."""
    made = []
    for name, program in [
        ("good", GOOD),
        ("bad", "echo oops; exit 4"),
        ("much", "seq 200000"),
    ]:
        result = shared_home.call("run", shared_home.descriptor(program, name), "--json")
        made.append(json.loads(result.stdout)["run"]["id"])
    return made


def test_status_tells_the_story(shared_home: Home, ids: list[str]) -> None:
    text = shared_home.ask("status", ids[1])
    assert text.startswith("✘ FAILED  bad in")
    assert ids[1] in text
    assert "code 4" in text
    read = json.loads(shared_home.ask("status", ids[1], "--json"))
    assert read["run"]["outcome"]["exit_code"] == 4
    assert read["events"][-1]["data"]["to"] == "FAILED"


def test_list_shows_newest_first_and_filters(shared_home: Home, ids: list[str]) -> None:
    assert shared_home.ask("list", "--ids").split() == ids[::-1]
    assert shared_home.ask("list", "--ids", "--state", "failed").split() == [ids[1]]
    assert shared_home.ask("list", "--ids", "--label", "task_name=good").split() == [ids[0]]
    both = ("--label", "task_name=good", "--label", "task_name=other")
    assert shared_home.ask("list", "--ids", *both) == ""
    assert shared_home.ask("list", "--ids", "--benchmark", "much").split() == [ids[2]]
    assert shared_home.ask("list", "--ids", "--before", ids[1]).split() == [ids[0]]
    table = shared_home.ask("list").splitlines()
    assert [line.split()[0] for line in table] == ["run", *ids[::-1]]
    read = json.loads(shared_home.ask("list", "--json"))
    assert [run["id"] for run in read["runs"]] == ids[::-1]


def test_logs_are_byte_exact(shared_home: Home, ids: list[str]) -> None:
    out = shared_home.call("logs", ids[0], "--stream", "stdout").stdout
    err = shared_home.call("logs", ids[0], "--stream", "stderr").stdout
    assert out == b"epoch 1 loss=0.1\nepoch 2 loss=0.2\nepoch 3 loss=0.3\n"
    assert err == b"binary \xff\x00 garbage\n"
    assert sorted(shared_home.call("logs", ids[0]).stdout) == sorted(out + err)
    much = shared_home.call("logs", ids[2]).stdout
    assert much == b"".join(b"%d\n" % number for number in range(1, 200_001))


def test_logs_are_searched_and_cut(shared_home: Home, ids: list[str]) -> None:
    found = shared_home.ask("logs", ids[2], "--grep", "19999", "--tail", "2")
    assert found == "199998\n199999\n"
    assert shared_home.ask("logs", ids[2], "--grep", "no such text") == ""
    assert shared_home.ask("logs", "--tail", "2") == "199999\n200000\n"
    nobody = shared_home.call("logs", "--unit", "nobody")
    assert (nobody.returncode, nobody.stdout) == (2, b"")
    assert b"it has benchmark" in nobody.stderr
    stamped = shared_home.ask("logs", ids[0], "--timestamps", "--grep", "epoch 2")
    assert stamped.endswith("Z epoch 2 loss=0.2\n")


def test_a_finished_log_is_followed_to_its_end(shared_home: Home, ids: list[str]) -> None:
    assert shared_home.ask("logs", ids[1], "-f") == "oops\n"


def test_metrics_are_a_table_json_and_csv(shared_home: Home, ids: list[str]) -> None:
    header, first, *_ = shared_home.ask("metrics", ids[0]).splitlines()
    assert header.split()[-1] == "trend"
    assert first.split() == [
        *("loss", "(nats)", "3", "0.2000", "0.2000", "0.1000", "0.3000", "0.3000", "▁▅█")
    ]
    read = json.loads(shared_home.ask("metrics", ids[0], "--json"))
    assert read["run"] == ids[0]
    rows = list(csv.DictReader(io.StringIO(shared_home.ask("metrics", ids[0], "--csv"))))
    values = [float(row["value"]) for row in rows if row["metric"] == "loss"]
    assert values == [0.1, 0.2, 0.3]
    only = shared_home.ask("metrics", ids[0], "--csv", "--series", "loss")
    assert len(only.splitlines()) == 4
    assert shared_home.call("metrics", ids[0], "--series", "lost").returncode == 2


def test_results_show_outcome_metrics_and_the_end_of_the_output(
    shared_home: Home, ids: list[str]
) -> None:
    text = shared_home.ask("results", ids[2], "--lines", "2")
    assert text.startswith("✔ SUCCEEDED  much in")
    assert "│ 199999\n  │ 200000\n" in text
    assert "│ oops" in shared_home.ask("results", ids[1])
    assert json.loads(shared_home.ask("results", "--json"))["run"]["id"] == ids[2]


def test_the_descriptor_comes_back_byte_for_byte(shared_home: Home, ids: list[str]) -> None:
    given = (shared_home.folder / "bad.toml").read_bytes()
    assert shared_home.call("show-descriptor", ids[1]).stdout == given


def test_history_is_oldest_first(shared_home: Home, ids: list[str]) -> None:
    lines = shared_home.ask("history").splitlines()
    assert [line.split(" : ")[0] for line in lines] == ids
    assert lines[0].split(" : ")[1] == str(shared_home.folder / "good.toml")


def test_watching_an_ended_run_gives_one_json_line(shared_home: Home, ids: list[str]) -> None:
    result = shared_home.call("watch", ids[1], "--json")
    assert result.returncode == 1
    [line] = result.stdout.splitlines()
    assert json.loads(line)["run"]["state"] == "FAILED"


@pytest.mark.parametrize("verb", ["status", "watch", "logs", "metrics", "results", "cancel"])
def test_an_ambiguous_or_unknown_name_is_explained(
    shared_home: Home, ids: list[str], verb: str
) -> None:
    ambiguous = shared_home.call(verb, ids[0][:4])
    assert ambiguous.returncode == 2
    assert "several runs start with" in ambiguous.stderr.decode()
    assert ids[2] in ambiguous.stderr.decode()
    unknown = shared_home.call(verb, "zzz")
    assert unknown.returncode == 2
    assert unknown.stderr.decode().count("\n") == 1


def test_a_reader_that_goes_away_is_no_error(shared_home: Home, ids: list[str]) -> None:
    command = subprocess.Popen(
        [ANUBIS, "logs", ids[2]],
        env=shared_home.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert command.stdout is not None
    assert command.stderr is not None
    assert command.stdout.readline() == b"1\n"
    command.stdout.close()
    said = command.stderr.read()
    command.stderr.close()
    assert command.wait(PATIENCE) == 141
    assert said == b""


@pytest.mark.parametrize("words", [["--help"], ["list"], ["status", "--json"], ["schema"]])
def test_a_closed_pipe_is_quiet_everywhere(
    shared_home: Home, ids: list[str], words: list[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [ANUBIS, *words], env=shared_home.environment, stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    assert result.returncode == 141
    assert result.stderr == b""


@pytest.mark.parametrize(
    "words", [["--help"], ["list"], ["logs"], ["run", "good.toml"], ["run", "--help"], ["schema"]]
)
def test_a_full_disk_behind_our_output_is_said_plainly(
    shared_home: Home, ids: list[str], words: list[str]
) -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [ANUBIS, *words],
            env=shared_home.environment,
            cwd=shared_home.folder,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
        )
    assert result.returncode == 3
    said = b"anubis: the output could not be written: No space left on device\n"
    assert result.stderr == said
    if "good.toml" in words:  # leave the home as the other tests expect it
        shared_home.call("watch")
        shared_home.ask("purge", "last")


@pytest.mark.parametrize("words", [["status", "--nonsense"], ["--nonsense"], ["status", "zzz"]])
def test_bad_usage_stays_bad_usage_when_nobody_reads_our_remarks(
    shared_home: Home, ids: list[str], words: list[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run([ANUBIS, *words], env=shared_home.environment, stderr=writer)
    os.close(writer)
    assert result.returncode == 2


def test_a_terminal_without_our_characters_gets_others(shared_home: Home, ids: list[str]) -> None:
    result = shared_home.call("status", environment={"PYTHONIOENCODING": "latin-1"})
    assert result.returncode == 0
    assert result.stdout.startswith(b"? SUCCEEDED")


def test_the_doctor_finds_a_machine_that_can_run_benchmarks(
    shared_home: Home, ids: list[str]
) -> None:
    assert shared_home.ask("doctor").splitlines()[0].startswith("✔ ok")
    findings = json.loads(shared_home.ask("doctor", "--json"))["findings"]
    names = {one["name"] for one in findings}
    assert {"python", "sqlite", "patterns", "compression", "cpu governor", "load"} <= names
    assert {"clock", "git", "gpus", "home", "disk", "runtime", "leftovers"} <= names
    assert {one["level"] for one in findings} <= {"ok", "warn"}


def test_a_home_that_cannot_be_used_is_explained(shared_home: Home) -> None:
    impossible = {"ANUBIS_HOME": "/dev/null/home"}
    status = shared_home.call("status", environment=impossible)
    assert status.returncode == 3
    assert b"set ANUBIS_HOME" in status.stderr
    assert b"Traceback" not in status.stderr
    doctor = shared_home.call("doctor", environment=impossible)
    assert doctor.returncode == 3
    assert "✘ fail" in doctor.stdout.decode()
