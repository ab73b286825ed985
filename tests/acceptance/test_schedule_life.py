"""Schedules are fired by whoever is there, and by the next one after a kill."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.acceptance

YEARLY = "0 0 1 1 *"
"""A schedule that will not fire while a test runs, unless the test runs at New Year."""


def test_a_runtime_stays_for_a_schedule_and_leaves_when_it_is_paused(home: Any) -> None:
    home.environment["ANUBIS_IDLE_SECONDS"] = "1"
    schedule_id = home.scheduled(YEARLY)
    pid = home.path / "runtime.pid"
    wait(pid.exists)
    time.sleep(2.5)  # longer than it stays without work
    assert pid.exists()
    home.ask("schedule", "pause", schedule_id)
    wait(lambda: not pid.exists())


def test_what_was_due_while_everything_was_dead_is_made_up_for_once(home: Any) -> None:
    schedule_id = home.scheduled(YEARLY)
    home.stop()
    put_off(home, schedule_id, timedelta(days=-1))

    home.ask("list")  # any command that looks takes schedules up again

    wait(lambda: home.schedule(schedule_id)["fired"] == 1)
    [run_id] = home.ask("list", "--family", schedule_id, "--ids").split()
    home.wait_for("SUCCEEDED", "status", run_id)
    assert "made up for" in home.ask("schedule", "show", schedule_id)
    assert home.schedule(schedule_id)["last_run"] == run_id


def test_firing_goes_on_though_the_runtime_is_killed(home: Any) -> None:
    schedule_id = home.scheduled(YEARLY)
    pid = home.path / "runtime.pid"
    wait(lambda: pid.exists() and pid.read_text().strip().isdigit())
    first = pid.read_text()
    wait(lambda: children(int(first)))  # among them who starts it again
    put_off(home, schedule_id, timedelta(seconds=3))
    os.kill(int(first), signal.SIGKILL)
    # No command is used until another runtime is there: it comes back by itself.
    wait(lambda: pid.exists() and pid.read_text().strip().isdigit() and pid.read_text() != first)
    wait(lambda: home.schedule(schedule_id)["fired"] == 1)
    [run_id] = home.ask("list", "--family", schedule_id, "--ids").split()
    home.wait_for("SUCCEEDED", "status", run_id)


def children(process: int) -> str:
    return Path(f"/proc/{process}/task/{process}/children").read_text()


def wait(is_so: Any) -> None:
    give_up = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def put_off(home: Any, schedule_id: str, by: timedelta) -> None:
    """Let a schedule be due a while from now, as if its author had submitted it long ago."""
    due = datetime.now(UTC) + by
    microseconds = int(due.timestamp()) * 1_000_000
    with sqlite3.connect(home.path / "anubis.sqlite", timeout=30) as database:
        changed = database.execute(
            "UPDATE schedule SET next_at = ? WHERE id = ?", (microseconds, schedule_id)
        ).rowcount
    database.close()
    assert changed == 1
