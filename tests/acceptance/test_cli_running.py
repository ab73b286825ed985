"""Running benchmarks from the command line: outcomes, exit codes, Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time

import pytest

from .conftest import PATIENCE, Home

pytestmark = pytest.mark.acceptance
COLUMNS = ("embedded", "remote")

TRAIN = """\
for n in 1 2 3; do echo "epoch $n loss=0.$n"; done
echo careful >&2
"""
SLOW = 'echo "ready"\nsleep 60\n'
UNTIL_GO = 'echo "ready"\nwhile [ ! -e go ]; do sleep 0.1; done\necho done\n'
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def test_a_run_is_told_line_by_line_and_ends_with_its_metrics(home: Home) -> None:
    result = home.call("run", home.descriptor(TRAIN))
    text = result.stdout.decode()
    assert result.returncode == 0, result.stderr
    assert b"\x1b" not in result.stdout
    assert result.stderr == b""
    told = [line.split()[1] for line in text.splitlines() if re.match(r"\d\d:\d\d:\d\d ", line)]
    assert [word for word in told if word != "metrics"] == [
        "SUBMITTED",
        "FETCHING",
        "QUEUED",
        "STARTING",
        "RUNNING",
        "FINISHING",
        "SUCCEEDED",
    ]
    assert "✔ SUCCEEDED  bench in " in text
    [loss] = [line.split() for line in text.splitlines() if line.startswith("  loss (nats)")]
    assert loss[2:] == ["3", "0.2000", "0.2000", "0.1000", "0.3000", "0.3000"]


def test_a_failing_benchmark_is_explained(home: Home) -> None:
    result = home.call("run", home.descriptor("echo the cause >&2; exit 7"))
    assert result.returncode == 1
    assert "✘ FAILED  bench in" in (text := result.stdout.decode())
    assert "code 7" in text
    assert "│ the cause" in text


def test_run_as_json_answers_once_with_everything(home: Home) -> None:
    result = home.call("run", home.descriptor(TRAIN), "--json")
    [line] = result.stdout.decode().splitlines()
    read = json.loads(line)
    assert read["run"]["state"] == "SUCCEEDED"
    assert read["run"]["outcome"]["exit_code"] == 0
    assert read["events"][0]["kind"] == "state"
    [loss] = [metric for metric in read["metrics"] if metric["name"] == "loss"]
    assert (loss["count"], loss["units"], loss["source"]) == (3, "nats", "pattern")


def test_submit_prints_only_the_id_and_the_run_goes_on(home: Home) -> None:
    answer = home.ask("submit", home.descriptor(TRAIN))
    assert UUID.fullmatch(answer.rstrip("\n"))
    watched = home.call("watch", answer.strip())
    assert watched.returncode == 0
    assert b"SUCCEEDED" in watched.stdout


def test_submit_can_watch(home: Home) -> None:
    result = home.call("submit", home.descriptor("exit 3"), "--watch")
    assert result.returncode == 1
    first, *rest = result.stdout.decode().splitlines()
    assert UUID.fullmatch(first)
    assert any("FAILED" in line for line in rest)


def test_a_descriptor_comes_from_standard_input_or_from_an_earlier_run(home: Home) -> None:
    name = home.descriptor(TRAIN)
    piped = home.call("run", "-", "--json", given=(home.folder / name).read_bytes())
    run = json.loads(piped.stdout)["run"]
    again = home.call("run", run["id"], "--json")
    repeated = json.loads(again.stdout)["run"]
    assert repeated["state"] == "SUCCEEDED"
    assert repeated["id"] != run["id"]
    assert repeated["descriptor_sha"] == run["descriptor_sha"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("spec_version = 1\n[info\n", "bench.toml:"),
        ('spec_version = "0.1.0"\n[inof]\n', "did you mean"),
        ("", "bench.toml:1:1"),
    ],
)
def test_a_bad_descriptor_is_explained_and_nothing_is_stored(
    home: Home, content: str, said: str
) -> None:
    name = home.descriptor(TRAIN)
    (home.folder / name).write_text(content)
    result = home.call("run", name)
    assert result.returncode == 2
    assert said in result.stderr.decode()
    assert b"Traceback" not in result.stderr
    assert result.stdout == b""
    assert home.ask("list") == "no runs\n"


@pytest.mark.parametrize(
    "words", [["run", "missing.toml"], ["run"], ["run", "bench.toml", "--engine", "abacus"]]
)
def test_what_cannot_be_run_is_bad_usage(home: Home, words: list[str]) -> None:
    home.descriptor(TRAIN)
    result = home.call(*words)
    assert result.returncode == 2
    assert b"Traceback" not in result.stderr
    assert result.stderr


def test_cancel_stops_a_run_and_keeps_its_output(home: Home) -> None:
    run_id = home.ask("submit", home.descriptor(SLOW)).strip()
    home.wait_for("ready", "logs")
    assert home.ask("cancel", run_id, "--wait") == f"{run_id} CANCELED\n"
    assert home.call("watch", run_id).returncode == 130
    assert home.ask("logs", run_id) == "ready\n"
    assert home.call("cancel", run_id).returncode == 2


def test_purge_stops_a_run_and_forgets_it(home: Home) -> None:
    run_id = home.ask("submit", home.descriptor(SLOW)).strip()
    home.wait_for("ready", "logs")
    assert home.ask("purge", run_id) == f"{run_id} purged\n"
    assert home.ask("list") == "no runs\n"
    assert home.call("logs", run_id).returncode == 2
    left = [path for path in home.path.rglob("*") if run_id in path.name]
    assert left == []


def wait_until_ready(home: Home, command: subprocess.Popen[bytes]) -> None:
    home.wait_for("ready", "logs")
    assert command.poll() is None


def finish(command: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = command.communicate(timeout=PATIENCE)
    return command.returncode, out.decode(), err.decode()


def test_ctrl_c_cancels_the_run_and_waits_for_its_end(home: Home) -> None:
    command = home.start("run", home.descriptor(SLOW))
    wait_until_ready(home, command)
    command.send_signal(signal.SIGINT)
    code, out, err = finish(command)
    assert code == 130
    assert "■ CANCELED  bench" in out
    assert "canceling the run" in err


def test_a_second_ctrl_c_leaves_at_once_and_the_run_is_still_canceled(home: Home) -> None:
    stubborn = "trap '' TERM\n" + SLOW.replace("sleep 60", "while true; do sleep 0.1; done")
    command = home.start("run", home.descriptor(stubborn, grace="3s"))
    wait_until_ready(home, command)
    command.send_signal(signal.SIGINT)
    time.sleep(0.5)
    command.send_signal(signal.SIGINT)
    code, out, err = finish(command)
    assert code == 130
    assert "still being canceled" in err
    assert "CANCELED" not in out
    home.wait_for("■ CANCELED", "status")


def test_ctrl_c_on_watch_leaves_the_run_alone(home: Home) -> None:
    home.ask("submit", home.descriptor(UNTIL_GO))
    command = home.start("watch")
    wait_until_ready(home, command)
    time.sleep(0.5)
    command.send_signal(signal.SIGINT)
    code, _, err = finish(command)
    assert code == 130
    assert "the run goes on" in err
    (home.folder / "go").touch()
    assert home.call("watch").returncode == 0


def test_a_run_survives_the_death_of_its_command(home: Home) -> None:
    command = home.start("run", home.descriptor(UNTIL_GO))
    wait_until_ready(home, command)
    command.kill()
    finish(command)
    (home.folder / "go").touch()
    assert home.call("watch").returncode == 0
    assert home.ask("logs") == "ready\ndone\n"
