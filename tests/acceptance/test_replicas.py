"""Several services of one home, with a Lease of a real cluster: one acts, the others pass on."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests import kubectl
from tests.kubectl import Space

from anubis.runtime import locking

from .operated import ANUBIS, DESCRIPTOR, PATIENCE

pytestmark = [pytest.mark.acceptance, pytest.mark.cluster]


class Replica:
    """``anubis serve`` at a port that is known before it serves."""

    def __init__(self, home: Any, name: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.log = home.folder / f"{name}.log"
        words = [ANUBIS, "serve", "--port", str(self.port)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                words, cwd=home.folder, env=home.environment, stdout=log, stderr=log
            )
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30)

    def status(self, path: str) -> int:
        try:
            return self.client.get(path).status_code
        except httpx.TransportError:  # not yet, or no more
            return 0

    def is_ready(self) -> bool:
        return self.status("/api/v1/ready") == 200

    def leads(self) -> bool:
        return "listening on" in self.log.read_text()

    def submit(self, command: str) -> str:
        body = {"descriptor": DESCRIPTOR.format(command=command)}
        answer = self.client.post("/api/v1/runs", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["run"]["id"])

    def state(self, run: str) -> str:
        try:
            return str(self.client.get(f"/api/v1/runs/{run}").json().get("state", ""))
        except httpx.TransportError:
            return ""

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@pytest.fixture
def space() -> Iterator[Space]:
    with kubectl.space("replicas") as made:
        yield made


@pytest.fixture
def replicas(home: Any, space: Space) -> Iterator[tuple[Replica, Replica]]:
    """The first leads, the second stands by."""
    config = home.folder / "kubeconfig"
    config.write_text(space.ask("config", "view", "--raw", "--minify", "--flatten"))
    config.chmod(0o600)
    mine = Space(name=space.name, kubeconfig=config)
    mine.ask("config", "set-context", "--current", f"--namespace={space.name}")
    home.environment |= {
        "KUBECONFIG": str(config),
        "ANUBIS_LEADER_LEASE": "anubis",
        "ANUBIS_KUBERNETES": "none",
    }
    made: list[Replica] = []
    try:
        made.append(Replica(home, "first"))
        kubectl.until(made[0].leads, "the first does not lead")
        made.append(Replica(home, "second"))
        kubectl.until(made[1].is_ready, "the second passes nothing on")
        yield made[0], made[1]
    finally:
        for replica in made:
            if replica.process.poll() is None:
                replica.end()
            replica.client.close()


def test_one_acts_and_the_other_passes_on(replicas: tuple[Replica, Replica]) -> None:
    first, second = replicas

    run = second.submit("echo through the other")
    kubectl.until(lambda: second.state(run) == "SUCCEEDED", "the run does not end")

    assert first.state(run) == "SUCCEEDED"
    assert not second.leads()
    assert second.end() == 0  # one that waits leaves when it is told to
    assert first.is_ready()


def test_when_the_leader_is_killed_the_other_goes_on_with_its_runs(
    home: Any, replicas: tuple[Replica, Replica]
) -> None:
    first, second = replicas
    marks = home.folder / "marks"
    run = first.submit(f"sh -c 'echo begun >> {marks}; sleep 3; echo ended >> {marks}'")
    waiting = first.submit("echo later")
    kubectl.until(lambda: first.state(run) == "RUNNING", "the run does not start")

    first.end(signal.SIGKILL)

    kubectl.until(second.leads, "nobody took over")
    kubectl.until(lambda: second.state(run) == "SUCCEEDED", "the run was not taken up")
    kubectl.until(lambda: second.state(waiting) == "SUCCEEDED", "what waited was forgotten")
    assert marks.read_text().split() == ["begun", "ended"]  # it was run once


def test_a_leader_that_leaves_hands_over(space: Space, replicas: tuple[Replica, Replica]) -> None:
    first, second = replicas
    before = space.get("lease", "anubis")["spec"]["holderIdentity"]

    assert first.end() == 0

    kubectl.until(second.leads, "nobody took over")
    kubectl.until(second.is_ready, "it is not ready")
    assert space.get("lease", "anubis")["spec"]["holderIdentity"] != before


def test_who_lost_the_lease_leaves(space: Space, replicas: tuple[Replica, Replica]) -> None:
    first, second = replicas
    taken = '{"spec": {"holderIdentity": "somebody-else"}}'

    space.ask("patch", "lease", "anubis", "--type=merge", f"--patch={taken}")

    assert first.process.wait(PATIENCE) == 3
    assert "Lease was lost" in first.log.read_text()
    assert "Traceback" not in first.log.read_text()
    kubectl.until(second.leads, "nobody took over when somebody-else fell silent")


def test_no_command_starts_a_runtime_of_its_own(
    home: Any, replicas: tuple[Replica, Replica]
) -> None:
    first, second = replicas
    second.end(signal.SIGKILL)
    first.end(signal.SIGKILL)

    home.ask("submit", home.descriptor("echo loss=1"))
    home.ask("list")

    assert home.call("runtime").returncode == 0  # at once: it is not the one
    assert not locking.is_held(home.path / "runtime.lock")
    assert b"SUBMITTED" in home.call("status", "last").stdout  # until a replica is there again
