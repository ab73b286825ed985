"""The background runtime comes when it is needed, goes when it is not, and may be killed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.acceptance


def runtime_pid(home: Any) -> int:
    give_up = time.monotonic() + 30
    while time.monotonic() < give_up:
        try:
            return int((home.path / "runtime.pid").read_text())
        except (FileNotFoundError, ValueError):
            time.sleep(0.02)
    pytest.fail("no runtime came")


def test_a_submitted_run_goes_on_though_its_terminal_is_gone(home: Any) -> None:
    file = home.descriptor("sleep 1; echo loss=0.25")
    run_id = home.ask("submit", file).strip()
    assert len(run_id) == 36
    home.wait_for("SUCCEEDED", "status", run_id)
    assert "loss=0.25" in home.ask("logs", run_id)


def test_a_runtime_killed_in_the_middle_of_a_run_changes_nothing(home: Any) -> None:
    file = home.descriptor("for i in 1 2 3 4 5 6; do echo line $i; sleep 0.3; done; echo loss=1")
    home.ask("submit", file)
    first = runtime_pid(home)
    home.wait_for("line 2", "logs", "last")
    os.kill(first, signal.SIGKILL)
    watched = home.call("watch", "last")
    assert watched.returncode == 0, watched.stdout.decode()
    lines = home.ask("logs", "last").splitlines()
    assert lines == [*(f"line {number}" for number in range(1, 7)), "loss=1"]


def test_a_killed_runtime_comes_back_by_itself_when_a_run_goes_on(home: Any) -> None:
    file = home.descriptor("sleep 2; echo loss=1")
    home.ask("submit", file)
    first = runtime_pid(home)
    home.wait_for("RUNNING", "status", "last")
    os.kill(first, signal.SIGKILL)
    give_up = time.monotonic() + 30
    # No command is used: only the file that the new runtime writes is looked at.
    while time.monotonic() < give_up and runtime_pid(home) == first:
        time.sleep(0.05)
    assert runtime_pid(home) != first
    home.wait_for("SUCCEEDED", "status", "last")


def test_an_idle_runtime_leaves_and_the_next_run_finds_another(home: Any) -> None:
    home.environment["ANUBIS_IDLE_SECONDS"] = "1"
    file = home.descriptor("echo loss=1")
    assert home.call("run", file).returncode == 0
    pid_file = home.path / "runtime.pid"
    give_up = time.monotonic() + 30
    while pid_file.exists() and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not pid_file.exists()
    assert home.call("run", file).returncode == 0


def test_a_corrected_setting_counts_for_the_next_run(home: Any) -> None:
    file = home.descriptor("echo loss=1")
    assert home.call("run", file).returncode == 0
    first = runtime_pid(home)
    assert home.call("run", file).returncode == 0
    assert runtime_pid(home) == first
    home.environment["ANUBIS_KUBERNETES_IMAGE"] = "registry.example.com/anubis:1"
    again = home.call("run", file)
    assert again.returncode == 0, again.stderr.decode()
    second = runtime_pid(home)
    assert second != first
    assert b"ANUBIS_KUBERNETES_IMAGE=registry" in Path(f"/proc/{second}/environ").read_bytes()
    assert b"warning" not in again.stderr
    (home.path / "config.toml").write_text("kubernetes_slots = 7\n")
    assert home.call("run", file).returncode == 0
    assert runtime_pid(home) != second


def test_a_busy_runtime_stays_and_who_submits_is_told_which_settings_it_does_not_know(
    home: Any,
) -> None:
    file = home.descriptor("sleep 3; echo loss=1")
    first_run = home.ask("submit", file).strip()
    first = runtime_pid(home)
    other = {"KUBECONFIG": "/tmp/another", "ANUBIS_SLOTS": "2"}
    told = home.call("submit", file, environment=other)
    assert told.returncode == 0
    words = "warning: settings: found a background runtime that was started with another slots, "
    assert words + "kubeconfig, expected the same as here" in told.stderr.decode()
    assert f"kill {first} makes it leave now" in told.stderr.decode()
    assert runtime_pid(home) == first
    home.ask("cancel", told.stdout.decode().strip())
    home.wait_for("SUCCEEDED", "status", first_run)
    home.wait_for("CANCELED", "status", told.stdout.decode().strip())


def test_what_a_stopped_runtime_left_running_is_taken_up_later(home: Any) -> None:
    file = home.descriptor("sleep 1.5; echo loss=1")
    home.ask("submit", file)
    home.wait_for("RUNNING", "status", "last")
    home.stop()
    time.sleep(2)  # the program ends while nobody looks
    home.wait_for("SUCCEEDED", "status", "last")
    assert "loss=1" in home.ask("logs", "last")


def test_what_a_killed_runtime_had_yet_to_remove_is_removed_for_whoever_looks(home: Any) -> None:
    """Its runs have ended: nothing else would start another one, and a pod may hold a GPU."""
    home.ask("submit", home.descriptor("echo loss=1"))
    home.wait_for("SUCCEEDED", "status", "last")
    home.stop()
    left = home.path / "runs" / home.ask("list", "--ids").strip()
    left.mkdir()
    home.ask("list")
    give_up = time.monotonic() + 30
    while left.exists():
        assert time.monotonic() < give_up, "nobody removes it"
        time.sleep(0.05)


def test_runs_see_the_environment_of_their_own_submitter(home: Any) -> None:
    file = home.descriptor('echo "colour is $COLOUR"')
    home.call("run", file, environment={"COLOUR": "red"})
    home.call("run", file, environment={"COLOUR": "blue"})
    assert "colour is blue" in home.ask("logs", "last")


def test_nothing_of_the_engine_is_left_and_others_may_not_look_into_the_home(home: Any) -> None:
    file = home.descriptor("echo loss=1")
    assert home.call("run", file).returncode == 0
    assert home.path.stat().st_mode & 0o077 == 0
    give_up = time.monotonic() + 10
    while list((home.path / "runs").iterdir()) and time.monotonic() < give_up:
        time.sleep(0.02)
    assert list((home.path / "runs").iterdir()) == []


def test_a_home_that_cannot_be_used_is_explained(home: Any, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("I am no folder")
    result = home.call("list", environment={"ANUBIS_HOME": str(blocked / "home")})
    assert result.returncode == 3
    assert b"ANUBIS_HOME" in result.stderr
    assert b"Traceback" not in result.stderr
