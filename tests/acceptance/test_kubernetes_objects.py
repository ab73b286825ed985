"""What a run has at the cluster: all that ``anubis manifest`` shows, nothing else, and in the end
nothing at all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import kubernetes_engines, real_parts
from tests.cluster import control

from anubis.bootstrap.manifests import NO_RUN

from . import clustered
from .clustered import ClusteredHome

pytestmark = [pytest.mark.acceptance, pytest.mark.cluster, pytest.mark.timeout(600)]

NOBODYS_RUN = "01a1e0b9-0000-7000-8000-00000badc0de"

LABELS = """\
spec_version = "0.1.0"
[info]
description = "Shown before it runs"
labels = {task_name = "shown", team = "vision"}
"""

SINGLE = """\
[env]
docker_image = "anubis-test/busybox:latest"
[ml]
benchmark_code = "sh -c 'echo begun; sleep 300'"
[limits]
grace = "1s"
"""

PAIR = """\
[hardware]
strategy = "inference"
[server.env]
docker_image = "anubis-test/busybox:latest"
ports = [8080]
start_command = "httpd -f -p 8080"
"""

MPI = """\
[hardware]
strategy = "horovod"
[hardware.distributed]
num_instances = 2
processes_per_instance = 1
[env]
docker_image = "anubis-test/python-mpi:latest"
[ml]
benchmark_code = "sh -c 'echo begun; sleep 300'"
[limits]
grace = "1s"
"""


@pytest.fixture(scope="module")
def images() -> None:
    clustered.need_our_image()
    control.load(real_parts.busybox(), real_parts.python_mpi())


@pytest.fixture
def home(tmp_path: Path, images: None) -> Iterator[ClusteredHome]:
    with clustered.home(tmp_path) as made:
        yield made


def begun(home: ClusteredHome, *tables: str) -> str:
    """Submit a program that is shown, and wait until it runs; its run."""
    (home.folder / "shown.toml").write_text(real_parts.with_images("".join(tables)))
    run_id = home.submit("shown.toml")
    home.wait_for("begun", "logs", run_id)
    return run_id


def shown(home: ClusteredHome, run_id: str) -> list[Any]:
    """What would be applied if the run were this one, but for keys, which are only stood for."""
    text = home.ask("manifest", "--json", "shown.toml")
    text = text.replace(NO_RUN, run_id).replace(NO_RUN[-12:], run_id[-12:])
    objects: list[Any] = json.loads(text)["items"]
    for one in objects:
        given = one.get("stringData", {})
        for name in [name for name in given if name.startswith("keys.")]:
            del given[name]
    return objects


def must_be_what_is_shown(home: ClusteredHome, run_id: str) -> list[str]:
    """The kinds of the run's objects. Applying what is shown again would change nothing."""
    objects = shown(home, run_id)
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    words = ("diff", "--server-side", "--field-manager=anubis", "--filename=-")
    differences = kubernetes_engines.kubectl(*words, text=listed)  # fails where there are some
    assert differences == ""
    wanted = sorted(f"{one['kind']}/{one['metadata']['name']}" for one in objects)
    left = kubernetes_engines.left(home.namespace)
    assert wanted == sorted(name for name in left if not name.startswith("Pod/"))
    return [one["kind"] for one in objects]


def must_bear_its_labels(home: ClusteredHome, run_id: str) -> None:
    """All objects and pods do."""
    selector = f"action-id={run_id},created-by=anubis,client-id,task_name=shown,team=vision"
    words = ("get", "pods,jobs,services,secrets", "--selector", selector, "--output", "json")
    found = json.loads(home.kubectl(*words))["items"]
    names = {f"{one['kind']}/{one['metadata']['name']}" for one in found}
    assert set(kubernetes_engines.left(home.namespace)) <= names | mpi_jobs(home)


def mpi_jobs(home: ClusteredHome) -> set[str]:
    """Those that there are; none where nobody knows them."""
    left = kubernetes_engines.left(home.namespace)
    return {name for name in left if name.startswith("MPIJob/")}


def must_end(home: ClusteredHome, run_id: str) -> None:
    """When it is canceled. That nothing of it is left is looked for at the end of each test."""
    home.ask("cancel", run_id)
    assert home.ended(run_id)["state"] == "CANCELED"


@pytest.mark.parametrize(
    ("tables", "kinds"),
    [
        ((SINGLE,), ["Job"]),
        ((PAIR, SINGLE), ["Service", "Job", "Job"]),
    ],
    ids=["single", "pair"],
)
def test_the_cluster_has_the_very_objects_that_are_shown(
    home: ClusteredHome, tables: tuple[str, ...], kinds: list[str]
) -> None:
    run_id = begun(home, LABELS, *tables)
    assert must_be_what_is_shown(home, run_id) == kinds
    must_bear_its_labels(home, run_id)
    must_end(home, run_id)


@pytest.mark.cluster(alone=True)
def test_without_the_operator_mpi_is_an_indexed_job_and_nothing_is_left_of_it(
    home: ClusteredHome,
) -> None:
    real_parts.need(
        not control.has_mpi_operator(),
        "the MPI operator is on: python3 -m tests.cluster mpi-operator off",
    )
    run_id = begun(home, LABELS, MPI)
    assert must_be_what_is_shown(home, run_id) == ["Secret", "Service", "Job", "Job"]
    must_bear_its_labels(home, run_id)
    must_end(home, run_id)


@pytest.mark.cluster(alone=True)
def test_with_the_operator_mpi_is_one_job_of_it_and_nothing_is_left_of_it(
    home: ClusteredHome,
) -> None:
    with control.mpi_operator():
        run_id = begun(home, LABELS, MPI)
        assert must_be_what_is_shown(home, run_id) == ["Secret", "MPIJob"]
        must_bear_its_labels(home, run_id)
        must_end(home, run_id)
        home.must_be_clean()
        kinds = "jobs,pods,services,secrets,configmaps"
        words = ("get", kinds, "--output", "name")
        # What the operator made itself bears no labels of ours, but has the name of the run. The
        # cluster's own collector deletes it, some time after its owner.
        give_up = time.monotonic() + 90
        while run_id[-12:] in (left := home.kubectl(*words)):
            assert time.monotonic() < give_up, left
            time.sleep(0.5)


def test_doctor_finds_what_nobody_knows_any_more_and_removes_it(home: ClusteredHome) -> None:
    """As after a home that was put back from yesterday: the cluster has a run that it never had."""
    must_end(home, begun(home, LABELS, SINGLE))  # the cluster has been used
    home.must_be_clean()
    home.stop()  # a runtime that is there would find it by itself
    objects = shown(home, NOBODYS_RUN)
    kubernetes_engines.kubectl("apply", "--filename=-", text=json.dumps(objects[0]))
    home.pod()
    assert "of 1 run" in home.call("doctor").stdout.decode()
    assert kubernetes_engines.left(home.namespace)
    assert "removed those of 1 run" in home.call("doctor", "--clean").stdout.decode()
    assert kubernetes_engines.left(home.namespace) == []
