"""The installed command, whose runs are pods of a real cluster, in a namespace of their own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import docker_images, kubernetes_engines, own_image, real_parts
from tests.cluster import control
from tests.docker_images import Unavailable

from .conftest import Home
from .serving import Service

SAMPLES = Path(__file__).parents[2] / "samples"
ENDED = ("SUCCEEDED", "FAILED", "CANCELED", "ERROR")
LONG = 240.0
"""Seconds for one run: below the time that a test has, on a machine that has much to do."""

HEAD = """\
spec_version = "0.1.0"
[info]
description = "For an acceptance test on Kubernetes"
"""

SINGLE = """\
[env]
docker_image = "{image}"
[ml]
benchmark_code = "sh -c '{program}'"
[limits]
grace = "3s"
"""

PAIR = """\
[hardware]
strategy = "inference"
[server.env]
docker_image = "{image}"
ports = [8080]
start_command = "sh -c 'echo hello > /tmp/index.html && {server}'"
[server.env.readiness_probe]
path = "/index.html"
initial_delay_seconds = 0
period_seconds = 1
"""
SERVER = "exec httpd -f -p 8080 -h /tmp"

ENSEMBLE = """\
[hardware]
strategy = "horovod"
[hardware.distributed]
num_instances = 2
"""


class ClusteredHome(Home):
    """A home that also knows what its cluster has."""

    def __init__(self, folder: Path, namespace: str, runs: Path | None = None) -> None:
        super().__init__(folder, runs)
        self.namespace = namespace
        self.environment |= settings(namespace)

    def submit(self, *words: str) -> str:
        """Submit to the cluster; the id of the run."""
        return self.ask("submit", "--engine", "kubernetes", *words).strip()

    def program(self, program: str, more: str = "", image: str = "") -> str:
        """Submit a shell program, with more tables for its descriptor; the id of the run."""
        single = SINGLE.format(image=image or real_parts.busybox(), program=program)
        (self.folder / "descriptor.toml").write_text(HEAD + more + single)
        return self.submit("descriptor.toml")

    def status(self, run_id: str) -> Any:
        """The run itself, as ``anubis status`` tells it."""
        return json.loads(self.ask("status", run_id, "--json"))["run"]

    def events(self, run_id: str) -> list[str]:
        """What happened to it, in words."""
        told = json.loads(self.ask("status", run_id, "--json"))["events"]
        return [str(event["message"]) for event in told]

    def ended(self, run_id: str) -> Any:
        """The run, when it has ended."""
        give_up = time.monotonic() + LONG
        while (run := self.status(run_id))["state"] not in ENDED:
            assert time.monotonic() < give_up, f"it does not end: {run}"
            time.sleep(0.5)
        return run

    def wait_for(self, text: str, *words: str) -> str:
        """Ask until the answer has this text. A cluster takes longer to begin than a machine."""
        give_up = time.monotonic() + LONG
        while text not in (answer := self.call(*words).stdout.decode()):
            assert time.monotonic() < give_up, f"{' '.join(words)} never said {text!r}: {answer}"
            time.sleep(0.3)
        return answer

    def kubectl(self, *words: str, checked: bool = True) -> str:
        """What the cluster answers about this namespace."""
        return kubernetes_engines.kubectl("-n", self.namespace, *words, checked=checked)

    def pod(self, unit: str = "benchmark") -> Any:
        """The pod of a unit of the only run, when there is one."""
        give_up = time.monotonic() + LONG
        words = ("get", "pods", "-l", f"anubis.dev/unit={unit}", "-o", "json")
        while not (found := json.loads(self.kubectl(*words))["items"]):
            assert time.monotonic() < give_up, f"{unit} never had a pod"
            time.sleep(0.2)
        return found[0]

    def kill_runtime(self) -> None:
        """As a power cut would. Others may start the next one at any moment."""
        os.kill(int((self.path / "runtime.pid").read_text()), signal.SIGKILL)

    def must_be_clean(self) -> None:
        """Nothing of any run is at the cluster any more; it may take a moment."""
        give_up = time.monotonic() + LONG
        while left := kubernetes_engines.left(self.namespace):
            assert time.monotonic() < give_up, f"of ended runs are left: {left}"
            time.sleep(0.5)


def pair(server: str) -> str:
    """Tables that make a program the client of a server."""
    return PAIR.format(image=real_parts.busybox(), server=server)


def settings(namespace: str) -> dict[str, str]:
    """What a home needs to use the test cluster."""
    return {
        "ANUBIS_KUBECONFIG": kubernetes_engines.KUBECONFIG,
        "ANUBIS_KUBERNETES_NAMESPACE": namespace,
        "ANUBIS_KUBERNETES_IMAGE": own_image.NAME,
        "ANUBIS_KUBERNETES_DATASETS": "none",
    }


def need_our_image() -> None:
    """Our own image, in the cluster, of the source as it is."""
    real_parts.need_cluster()
    try:
        own_image.loaded()
    except Unavailable as error:
        real_parts.need(False, f"our own image cannot be made: {error}")


@contextlib.contextmanager
def home(folder: Path) -> Iterator[ClusteredHome]:
    """A home with a namespace; both are clean at the end."""
    with kubernetes_engines.namespace() as namespace:
        made = ClusteredHome(folder, namespace)
        try:
            yield made
            made.must_be_clean()
        finally:
            made.wait_for_removal()
            made.stop()
        assert made.programs() + made.containers() == []


@contextlib.contextmanager
def remote_home(folder: Path) -> Iterator[tuple[ClusteredHome, Service]]:
    """The same, but a service does the work, and commands ask it."""
    with kubernetes_engines.namespace() as namespace:
        service = Service(folder)
        service.environment |= settings(namespace)
        service.start()
        try:
            made = ClusteredHome(folder, namespace, runs=service.home)
            made.ask("register", service.endpoint)
            yield made, service
            made.must_be_clean()
            made.wait_for_removal()
        finally:
            service.stop()
        assert made.programs() + made.containers() == []


@pytest.fixture(scope="session")
def small_images() -> None:
    """Those of shell programs, in the cluster."""
    need_our_image()
    control.load(real_parts.busybox(), real_parts.python_mpi())


@pytest.fixture(scope="session")
def samples_in_cluster(sample_images: None) -> None:
    """The images of all samples, in Docker and in the cluster."""
    need_our_image()
    docker_images.build(SAMPLES / "hello-world", "anubis-samples/hello-world", own_image.NAME)
    built = sorted(file.parent.name for file in SAMPLES.glob("*/Dockerfile"))
    control.load("python:3.11-slim", *(f"anubis-samples/{name}:latest" for name in built))
