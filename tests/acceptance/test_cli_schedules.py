"""Schedules, looked after with the installed command: on this machine, and over a service."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.acceptance

COLUMNS = ("embedded", "remote")

YEARLY = "0 0 1 1 *"
"""A schedule that will not fire while a test runs, unless the test runs at New Year."""


def test_a_schedule_is_stored_run_listed_paused_resumed_and_removed(home: Any) -> None:
    schedule_id = home.scheduled(YEARLY)
    assert schedule_id in home.ask("schedule", "list")
    run_id = home.ask("schedule", "run", "nightly").strip()
    assert home.call("watch", run_id).returncode == 0
    assert home.ask("list", "--family", schedule_id, "--ids").split() == [run_id]

    assert "paused" in home.ask("schedule", "pause", schedule_id)
    assert home.schedule(schedule_id)["next_at"] is None
    assert "fires next at" in home.ask("schedule", "resume", "nightly")
    assert home.schedule(schedule_id)["fired"] == 1
    assert "removed" in home.ask("schedule", "remove", schedule_id)
    assert home.ask("schedule", "list") == "no schedules\n"
    assert home.ask("list", "--family", schedule_id, "--ids").split() == [run_id]
