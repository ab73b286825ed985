"""Whoever dies while a run is on Kubernetes: no line is lost, nothing runs twice, nothing stays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import real_parts
from tests.cluster import control

from . import clustered
from .clustered import ENSEMBLE, SERVER, ClusteredHome, pair, small_images
from .serving import Service

__all__ = ["small_images"]

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.cluster,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("small_images"),
]

COUNT = 60
COUNTING = (
    f"echo begun; for i in $(seq {COUNT}); do echo line $i; echo bad $i >&2; sleep 0.15; done"
)
LINES = ["begun", *(f"line {number}" for number in range(1, COUNT + 1))]
BAD_LINES = [f"bad {number}" for number in range(1, COUNT + 1)]

KILL_RECORDER = """
import os, signal
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) != os.getpid():
        words = open(f"/proc/{name}/cmdline", "rb").read().split(b"\\0")
        if any(word.endswith(b"kubernetes.recorder") for word in words):
            os.kill(int(name), signal.SIGKILL)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ClusteredHome]:
    with clustered.home(tmp_path) as made:
        yield made


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[ClusteredHome, Service]]:
    with clustered.remote_home(tmp_path) as made:
        yield made


def lines(home: ClusteredHome, run_id: str, unit: str, stream: str = "stdout") -> list[str]:
    return home.ask("logs", run_id, "--unit", unit, "--stream", stream).splitlines()


def must_have_counted(home: ClusteredHome, run_id: str, *units: str) -> None:
    """Each unit has counted once, and everything that it wrote is kept in order."""
    run = home.ended(run_id)
    assert (run["state"], run["outcome"]["exit_code"]) == ("SUCCEEDED", 0), home.events(run_id)
    for unit in units:
        assert lines(home, run_id, unit) == LINES
        assert lines(home, run_id, unit, "stderr") == BAD_LINES


def kill_recorder(home: ClusteredHome, pod: str, *, checked: bool = True) -> None:
    words = ("exec", pod, "-c", "recorder", "--", "python3", "-c", KILL_RECORDER)
    home.kubectl(*words, checked=checked)


def kill_again_and_again(service: Service, times: int) -> None:
    """At moments that are no round numbers, so that they fall into all that a run does."""
    for number in range(times):
        time.sleep(0.3 + 0.71 * number)
        service.kill()
        service.start()


def test_a_runtime_killed_under_a_run_loses_nothing_and_runs_it_once(home: ClusteredHome) -> None:
    run_id = home.program(COUNTING)
    home.wait_for("line 3", "logs", run_id)
    home.kill_runtime()
    must_have_counted(home, run_id, "benchmark")


def test_a_service_killed_again_and_again_loses_nothing_and_runs_it_once(
    served: tuple[ClusteredHome, Service],
) -> None:
    home, service = served
    run_id = home.program(COUNTING)
    kill_again_and_again(service, 5)
    must_have_counted(home, run_id, "benchmark")


def test_a_service_killed_under_a_server_and_its_client_finds_both_again(
    served: tuple[ClusteredHome, Service],
) -> None:
    home, service = served
    run_id = home.program(COUNTING, pair(SERVER))
    kill_again_and_again(service, 5)
    must_have_counted(home, run_id, "client")
    assert home.ended(run_id)["outcome"]["unit"] == "client"


def test_a_service_killed_under_processes_of_mpi_finds_them_all_again(
    served: tuple[ClusteredHome, Service],
) -> None:
    home, service = served
    run_id = home.program(COUNTING, ENSEMBLE, real_parts.python_mpi())
    kill_again_and_again(service, 5)
    must_have_counted(home, run_id, "rank-0", "rank-1")


def test_a_recorder_killed_in_its_pod_loses_nothing(home: ClusteredHome) -> None:
    run_id = home.program(COUNTING)
    home.wait_for("line 3", "logs", run_id)
    kill_recorder(home, home.pod()["metadata"]["name"])
    must_have_counted(home, run_id, "benchmark")


def test_a_program_whose_recorder_was_killed_for_good_is_no_success(home: ClusteredHome) -> None:
    """A node starts what dies again later each time; the program ends meanwhile."""
    run_id = home.program(COUNTING)
    home.wait_for("line 3", "logs", run_id)
    pod = home.pod()["metadata"]["name"]
    while home.status(run_id)["state"] in ("RUNNING", "FINISHING"):
        kill_recorder(home, pod, checked=False)
    run = home.ended(run_id)
    assert (run["state"], run["outcome"]["cause"]) == ("ERROR", "lost")
    assert run["outcome"]["reason"].endswith("its pod has no recorder any more")
    assert lines(home, run_id, "benchmark")[:4] == LINES[:4]


@pytest.mark.cluster(alone=True)
def test_a_service_that_starts_while_the_cluster_is_away_finds_its_run_again(
    served: tuple[ClusteredHome, Service],
) -> None:
    home, service = served
    run_id = home.program(COUNTING)
    home.wait_for("line 3", "logs", run_id)
    with control.away("kube-apiserver"):
        service.kill()
        service.start()
        time.sleep(5)  # longer than the program still runs, on a quick machine
        assert home.status(run_id)["state"] == "RUNNING"
    must_have_counted(home, run_id, "benchmark")


@pytest.mark.cluster(alone=True)
def test_a_run_that_is_canceled_while_the_cluster_is_away_ends_when_it_is_back(
    served: tuple[ClusteredHome, Service],
) -> None:
    home, _ = served
    run_id = home.program("echo begun; sleep 300")
    home.wait_for("begun", "logs", run_id)
    with control.away("kube-apiserver"):
        home.ask("cancel", run_id)
    assert home.ended(run_id)["state"] == "CANCELED"
