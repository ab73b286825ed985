"""All runs of a schedule are found at the cluster by one label, and no other run is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests import real_parts

from . import clustered
from .clustered import ClusteredHome, small_images
from .test_schedule_life import YEARLY, put_off, wait

__all__ = ["small_images"]

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.cluster,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("small_images"),
]

DESCRIPTOR = """\
spec_version = "0.1.0"
[info]
description = "Fired by a schedule"
scheduling = "{scheduling}"
labels = {{task_name = "fired", parent-action-id = "forged"}}
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ClusteredHome]:
    with clustered.home(tmp_path) as made:
        yield made


def submit(home: ClusteredHome, scheduling: str) -> str:
    """A program with a server, so that there is an object of each kind; what it became."""
    head = DESCRIPTOR.format(scheduling=scheduling)
    program = clustered.SINGLE.format(image=real_parts.busybox(), program="echo begun; sleep 300")
    file = home.folder / "fired.toml"
    file.write_text(f"{head}{clustered.pair(clustered.SERVER)}{program}")
    return home.submit(file.name)


def runs_found(home: ClusteredHome, kinds: str, selector: str) -> set[str]:
    """To which runs the things belong that a selector finds."""
    words = ("get", kinds, "--selector", selector, "--output", "json")
    found = json.loads(home.kubectl(*words))["items"]
    return {one["metadata"]["labels"]["action-id"] for one in found}


def test_one_label_finds_all_runs_of_a_schedule(home: ClusteredHome) -> None:
    schedule_id = submit(home, YEARLY)
    home.stop()
    put_off(home, schedule_id, timedelta(days=-1))
    home.ask("list")  # any command that looks takes schedules up again
    wait(lambda: home.schedule(schedule_id)["fired"] == 1)
    home.ask("schedule", "run", schedule_id)
    runs = home.ask("list", "--family", schedule_id, "--ids").split()
    assert len(runs) == 2
    alone = submit(home, "single_run")
    for run in (*runs, alone):
        home.wait_for("begun", "logs", run)

    mine = f"parent-action-id={schedule_id}"
    assert runs_found(home, "pods", mine) == set(runs)
    assert runs_found(home, "pods", "!parent-action-id") == {alone}
    words = ("get", "pods,jobs,services", "--selector", mine, "--output", "name")
    assert len(home.kubectl(*words).split()) == len(runs) * len(["Service", *["Job", "Pod"] * 2])

    home.ask("cancel", *runs, alone)
    for run in (*runs, alone):
        assert home.ended(run)["state"] == "CANCELED"
