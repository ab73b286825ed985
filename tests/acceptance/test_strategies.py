"""Runs of several units, on every engine: how they fail, are canceled, and outlive the service."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import real_parts

from .conftest import Home
from .serving import PATIENCE, Service, serving

pytestmark = pytest.mark.acceptance

TOP = """\
spec_version = "0.1.0"
[info]
description = "For an acceptance test of strategies"
[hardware]
strategy = "{strategy}"
[env]
docker_image = "{image}"
[ml]
benchmark_code = '''{command}'''
[limits]
grace = "2s"
readiness = "{readiness}"
"""

SERVER = """\
[server.env]
docker_image = "{image}"
ports = [8080]
start_command = '''{command}'''
[server.env.readiness_probe]
path = "/"
initial_delay_seconds = 0
period_seconds = 1
"""

SERVES = "$(ANUBIS_PYTHON) -m http.server $(INFERENCE_SERVER_PORT)"
WAITS = "sh -c 'echo begun; exec sleep 1000'"
COUNTS = """sh -c 'i=0; while [ $i -lt 40 ]; do echo "${R}line $i"; i=$((i+1)); sleep 0.1; done'"""

MEETS = """\
$(ANUBIS_PYTHON) -c '
import os, socket, time

role, told = os.environ["DMLC_ROLE"], os.environ
root = told["DMLC_PS_ROOT_URI"], int(told["DMLC_PS_ROOT_PORT"])

def reach():
    while True:
        try:
            return socket.create_connection(root)
        except OSError:
            time.sleep(0.1)

if role == "scheduler":
    listener = socket.create_server(("", root[1]))
    for _ in range(int(told["DMLC_NUM_SERVER"]) + int(told["DMLC_NUM_WORKER"])):
        print("met a", listener.accept()[0].recv(99).decode(), flush=True)
else:
    reach().sendall(role.encode())
    print(role, "was there", flush=True)
'
"""


class Place:
    """An engine, and what descriptors need to name on it."""

    def __init__(self, engine: str, image: str) -> None:
        self.engine = engine
        self.image = image

    def single(self, command: str) -> str:
        return self._top("single_node", command)

    def mpi(self, command: str) -> str:
        return self._top("horovod", command)

    def parameter_server(self, command: str) -> str:
        return self._top("mxnet_parameter_server", command)

    def inference(self, server: str, client: str, *, readiness: str = "1m") -> str:
        top = self._top("inference", client, readiness)
        return top + SERVER.format(image=self.image, command=server)

    def _top(self, strategy: str, command: str, readiness: str = "1m") -> str:
        names = {"strategy": strategy, "command": command, "image": self.image}
        return TOP.format(readiness=readiness, **names)


@pytest.fixture(params=["process", "docker"])
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "docker":
        return Place("docker", real_parts.python_mpi())
    real_parts.need_mpi()
    return Place("process", "")


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Service]:
    """A service of one test, which may kill it."""
    with serving(tmp_path) as made:
        yield made


def submit(home: Home, place: Place, descriptor: str) -> None:
    (home.folder / "bench.toml").write_text(descriptor)
    home.ask("submit", "--engine", place.engine, "bench.toml")


def run(home: Home, place: Place, descriptor: str) -> tuple[int, str]:
    """Run to the end; exit code, and what was said."""
    (home.folder / "bench.toml").write_text(descriptor)
    result = home.call("run", "--engine", place.engine, "bench.toml")
    return result.returncode, result.stdout.decode() + result.stderr.decode()


def told(home: Home) -> dict[str, Any]:
    return dict(json.loads(home.ask("status", "last", "--json")))


def wait_for_end(home: Home) -> dict[str, Any]:
    give_up = time.monotonic() + PATIENCE
    while (run := told(home)["run"])["outcome"] is None:
        assert time.monotonic() < give_up, run
        time.sleep(0.2)
    return dict(run)


def numbers(home: Home, unit: str) -> list[int]:
    """The numbers of the lines that a unit wrote."""
    written = home.ask("logs", "last", "--unit", unit)
    return [int(number) for number in re.findall(r"line (\d+)$", written, re.MULTILINE)]


def must_be_quiet(home: Home) -> None:
    """Nothing of the ended run is left."""
    home.wait_for_removal()
    assert home.programs() == []
    assert home.containers() == []


@pytest.mark.parametrize("strategy", ["inference", "mpi"])
def test_a_canceled_run_leaves_nothing_behind(home: Home, place: Place, strategy: str) -> None:
    text = place.inference(SERVES, WAITS) if strategy == "inference" else place.mpi(WAITS)
    submit(home, place, text)
    home.wait_for("begun", "logs", "last")
    home.ask("cancel", "--wait", "last")
    assert told(home)["run"]["state"] == "CANCELED"
    must_be_quiet(home)


def test_a_server_finds_its_models_where_the_descriptor_says(home: Home, place: Place) -> None:
    (home.folder / "weights.txt").write_text("weights of a model\n")
    server = f"sh -c 'cat /models/weights.txt; exec {SERVES}'"
    models = '[[server.models]]\nsrc = "weights.txt"\npath = "/models/weights.txt"\n'
    code, said = run(home, place, place.inference(server, "echo measured") + models)
    assert code == 0, said
    assert "weights of a model" in home.ask("logs", "last", "--unit", "server")


def test_a_server_that_dies_fails_the_run_with_its_own_last_lines(home: Home, place: Place) -> None:
    server = "sh -c 'echo loading; echo the model file is broken >&2; exit 3'"
    code, said = run(home, place, place.inference(server, "echo measured"))
    assert code == 1, said
    assert "server exited with code 3" in said
    assert "the model file is broken" in said
    assert "measured" not in home.ask("logs", "last"), "the client was never started"
    must_be_quiet(home)


def test_a_server_that_dies_while_it_is_measured_fails_the_run(home: Home, place: Place) -> None:
    server = f"sh -c 'timeout 3 {SERVES}; echo out of memory; exit 4'"
    code, said = run(home, place, place.inference(server, WAITS))
    assert code == 1, said
    assert "server exited with code 4" in said
    assert "out of memory" in said
    must_be_quiet(home)


def test_a_server_that_never_gets_ready_fails_the_run_with_its_own_last_lines(
    home: Home, place: Place
) -> None:
    server = "sh -c 'echo still loading the model; exec sleep 1000'"
    code, said = run(home, place, place.inference(server, "echo measured", readiness="3s"))
    assert code == 1, said
    assert "ready" in said
    assert "still loading the model" in said
    assert "measured" not in home.ask("logs", "last")
    must_be_quiet(home)


def test_a_client_that_fails_decides_and_its_server_is_stopped(home: Home, place: Place) -> None:
    client = "sh -c 'echo wrong answer; exit 3'"
    code, said = run(home, place, place.inference(SERVES, client))
    assert code == 1, said
    assert "client exited with code 3" in said
    assert "wrong answer" in said
    must_be_quiet(home)


def test_a_rank_that_fails_fails_the_run_with_what_it_said(home: Home, place: Place) -> None:
    rank = """sh -c 'echo "rank $OMPI_COMM_WORLD_RANK diverged"; exit $OMPI_COMM_WORLD_RANK'"""
    code, said = run(home, place, place.mpi(rank))
    assert code == 1, said
    assert "launcher exited with code 1" in said
    assert "rank 1 diverged" in said
    must_be_quiet(home)


def test_a_variable_of_several_lines_comes_to_ranks_as_one(home: Home, place: Place) -> None:
    rank = """sh -c 'echo "has $(echo "$POEM" | tr "\\n" "|") and no TWO$TWO"'"""
    text = place.mpi(rank).replace("[ml]", '[env.vars]\nPOEM = "one\\nTWO=2"\n[ml]')
    code, said = run(home, place, text)
    assert code == 0, said
    lines = home.ask("logs", "last").splitlines()
    assert lines == ["has one|TWO=2| and no TWO"] * 2
    must_be_quiet(home)


def test_all_parts_of_a_parameter_server_meet_at_the_scheduler(home: Home, place: Place) -> None:
    code, said = run(home, place, place.parameter_server(MEETS))
    assert code == 0, said
    assert "worker-0 exited with code 0" in said
    met = sorted(home.ask("logs", "last", "--unit", "scheduler").split("\n")[:-1])
    assert met == ["met a server"] * 2 + ["met a worker"] * 2
    for unit in ("server-0", "server-1", "worker-0", "worker-1"):
        assert "was there" in home.ask("logs", "last", "--unit", unit)
    must_be_quiet(home)


def test_an_image_that_nobody_has_ends_the_run_with_its_name(home: Home) -> None:
    real_parts.need_docker()
    place = Place("docker", "anubis-test/nobody-made-this:1")
    code, said = run(home, place, place.single("echo never"))
    assert code != 0
    assert "anubis-test/nobody-made-this:1" in said
    outcome = told(home)["run"]["outcome"]
    assert outcome["state"] == "ERROR"
    must_be_quiet(home)


@pytest.mark.parametrize("strategy", ["single", "inference", "mpi"])
def test_a_run_outlives_a_killed_service_and_loses_no_line(
    tmp_path: Path, mortal: Service, place: Place, strategy: str
) -> None:
    home = Home(tmp_path, runs=mortal.home)
    home.ask("register", mortal.endpoint)
    ranked = COUNTS.replace("${R}", "rank $OMPI_COMM_WORLD_RANK ")
    text, units = {
        "single": (place.single(COUNTS.replace("${R}", "")), ["benchmark"]),
        "inference": (place.inference(SERVES, COUNTS.replace("${R}", "")), ["client"]),
        "mpi": (place.mpi(ranked), ["rank-0", "rank-1"]),
    }[strategy]
    submit(home, place, text)
    home.wait_for("line 3", "logs", "last")
    mortal.kill()
    time.sleep(1.0)  # the run goes on without a service
    mortal.start()
    run = wait_for_end(home)
    assert run["state"] == "SUCCEEDED", run
    for unit in units:
        assert numbers(home, unit) == list(range(40)), unit
    must_be_quiet(home)
