"""A run on Kubernetes can be canceled or purged at any moment, and leaves nothing there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import real_parts

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

LONG = "echo begun; sleep 300"
STUBBORN = "trap : TERM; echo begun; while true; do sleep 1; done"
NOWHERE = '[hardware]\ninstance_type = "p4d.24xlarge"\n'
NO_SUCH_IMAGE = "anubis-test/no-such-image:1"
NEVER_READY = "rm /tmp/index.html && exec httpd -f -p 8080 -h /tmp"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ClusteredHome]:
    with clustered.home(tmp_path) as made:
        yield made


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[ClusteredHome, Service]]:
    with clustered.remote_home(tmp_path) as made:
        yield made


def must_be_canceled(home: ClusteredHome, run_id: str) -> None:
    """Cancel it; it ends so, soon, and is gone from the cluster."""
    home.ask("cancel", run_id)
    run = home.ended(run_id)
    assert (run["state"], run["outcome"]["cause"]) == ("CANCELED", "canceled"), home.events(run_id)
    home.must_be_clean()


def test_a_run_that_has_not_reached_the_cluster_yet_is_canceled(home: ClusteredHome) -> None:
    must_be_canceled(home, home.program(LONG))


def test_a_run_for_which_there_is_no_node_is_canceled(home: ClusteredHome) -> None:
    run_id = home.program(LONG, NOWHERE)
    home.wait_for("benchmark: ", "status", run_id)
    must_be_canceled(home, run_id)


def test_a_run_whose_image_cannot_be_pulled_is_canceled(home: ClusteredHome) -> None:
    run_id = home.program(LONG, image=NO_SUCH_IMAGE)
    home.wait_for(NO_SUCH_IMAGE, "status", run_id)
    must_be_canceled(home, run_id)


def test_a_run_whose_server_never_gets_ready_is_canceled(home: ClusteredHome) -> None:
    run_id = home.program(LONG, pair(NEVER_READY))
    home.pod("server")
    must_be_canceled(home, run_id)


@pytest.mark.parametrize("program", [LONG, STUBBORN], ids=["polite", "stubborn"])
def test_a_program_that_runs_is_canceled_and_what_it_said_is_kept(
    home: ClusteredHome, program: str
) -> None:
    run_id = home.program(program)
    home.wait_for("begun", "logs", run_id)
    must_be_canceled(home, run_id)
    assert home.ask("logs", run_id, "--stream", "stdout") == "begun\n"


def test_a_server_and_its_client_are_canceled(home: ClusteredHome) -> None:
    run_id = home.program(LONG, pair(SERVER))
    home.wait_for("begun", "logs", run_id, "--unit", "client")
    must_be_canceled(home, run_id)


def test_processes_of_mpi_are_canceled(home: ClusteredHome) -> None:
    run_id = home.program(LONG, ENSEMBLE, real_parts.python_mpi())
    home.wait_for("begun", "logs", run_id, "--unit", "rank-1")
    must_be_canceled(home, run_id)


def test_a_service_killed_in_the_middle_of_a_cancel_goes_on_with_it(
    served: tuple[ClusteredHome, Service],
) -> None:
    home, service = served
    run_id = home.program(STUBBORN)
    home.wait_for("begun", "logs", run_id)
    home.ask("cancel", run_id)
    time.sleep(1)  # it has begun to stop, which takes three seconds
    service.kill()
    service.start()
    assert home.ended(run_id)["state"] == "CANCELED"


@pytest.mark.parametrize("waits_for", ["begun", ""], ids=["running", "starting"])
def test_a_purged_run_is_forgotten_and_gone_from_the_cluster(
    home: ClusteredHome, waits_for: str
) -> None:
    run_id = home.program(LONG)
    if waits_for:
        home.wait_for(waits_for, "logs", run_id)
    else:
        home.pod()
    home.ask("purge", run_id)
    assert home.call("status", run_id).returncode != 0
    home.must_be_clean()


def test_an_ended_run_is_gone_from_the_cluster_before_it_is_purged(home: ClusteredHome) -> None:
    run_id = home.program("echo done")
    assert home.ended(run_id)["state"] == "SUCCEEDED"
    home.must_be_clean()
    home.ask("purge", run_id)
