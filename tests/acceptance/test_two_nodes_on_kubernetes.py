"""What does not fit on one machine: runs over two real nodes of a cluster."""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests import counted_downloads, own_image, real_parts
from tests.cluster import layout
from tests.counted_downloads import Server

from . import clustered
from .clustered import ENDED, LONG, SAMPLES, ClusteredHome, samples_in_cluster
from .compared_samples import NAMED, Result, result, submit

__all__ = ["samples_in_cluster"]

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.cluster(alone=True),
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("samples_in_cluster"),
]

FIRST = layout.FIRST.name
COUNT = 150_000
"""Lines: more than a node keeps in one file of output."""


@pytest.fixture
def second() -> Iterator[str]:
    """The name of a second node, which has the images of samples."""
    samples = (f"anubis-samples/{name}:latest" for name in ("mpi", "inference"))
    with real_parts.second_node(own_image.NAME, real_parts.busybox(), *samples) as name:
        yield name


@pytest.fixture
def home(second: str, tmp_path: Path) -> Iterator[ClusteredHome]:
    with clustered.home(tmp_path) as made:
        yield made


def on(node: str) -> str:
    """A table that makes a run be there."""
    return f'[kubernetes]\nnode_selector = {{ "kubernetes.io/hostname" = "{node}" }}\n'


def one_per_node(home: ClusteredHome, sample: str) -> str:
    """Submit a sample each of whose programs wants a node; the id of the run."""
    text = (SAMPLES / sample / "descriptor.toml").read_text()
    changed = text.replace("[hardware]\n", "[hardware]\nexclusive = true\n")
    assert changed != text
    (home.folder / f"{sample}.toml").write_text(changed)
    return home.submit(f"{sample}.toml")


def nodes(home: ClusteredHome, run_id: str) -> Mapping[str, set[str]]:
    """On which nodes the pods of each unit were, seen while it ran."""
    found: dict[str, set[str]] = {}
    words = ("get", "pods", "-l", f"anubis.dev/run={run_id}", "-o", "json")
    give_up = time.monotonic() + LONG
    while home.status(run_id)["state"] not in ENDED:
        assert time.monotonic() < give_up, f"it does not end: {home.events(run_id)}"
        for pod in json.loads(home.kubectl(*words))["items"]:
            if node := pod["spec"].get("nodeName"):
                unit = pod["metadata"]["labels"]["anubis.dev/unit"]
                found.setdefault(unit, set()).add(node)
        time.sleep(0.3)
    return found


def must_be_as_on_this_machine(home: ClusteredHome, name: str, run_id: str) -> None:
    """The same as of the sample's processes."""
    sample = NAMED[name]
    here = result(home, sample, submit(home, sample, "process"))
    there: Result = result(home, sample, run_id)
    for part in ("outcome", "metrics", "lines", "warnings"):
        assert getattr(there, part) == getattr(here, part), part
    assert there.outcome["state"] == "SUCCEEDED"


def test_mpi_with_one_instance_per_node_runs_on_both_as_on_one_machine(
    home: ClusteredHome, second: str
) -> None:
    """Also if one of them is busy at first: when it is free, the scheduler looks again."""
    real_parts.need_mpi()
    other = home.program("echo begun; exec sleep 600", on(FIRST))
    home.wait_for("begun", "logs", other)
    run_id = one_per_node(home, "mpi")
    home.wait_for("runs another benchmark", "status", run_id)
    home.ask("cancel", other)
    found = nodes(home, run_id)
    assert found["worker"] == {FIRST, second}
    assert len(found["launcher"]) == 1, "it does little, and is beside one of them"
    must_be_as_on_this_machine(home, "mpi", run_id)


def test_a_client_measures_a_server_on_another_node(home: ClusteredHome, second: str) -> None:
    run_id = one_per_node(home, "inference")
    found = nodes(home, run_id)
    assert found["server"] | found["client"] == {FIRST, second}
    assert len(found["server"]) == len(found["client"]) == 1
    must_be_as_on_this_machine(home, "inference", run_id)


def test_what_a_program_on_the_second_node_says_and_uses_is_recorded_whole(
    home: ClusteredHome, second: str
) -> None:
    """Also when that node has moved the beginning of its output to another file."""
    half = COUNT // 2
    program = f"seq {half}; echo bad >&2; sleep 5; seq {half + 1} {COUNT}; sleep 1"
    run_id = home.program(program, on(second))
    assert nodes(home, run_id) == {"benchmark": {second}}
    assert home.status(run_id)["state"] == "SUCCEEDED", home.events(run_id)
    said = home.ask("logs", run_id, "--stream", "stdout").splitlines()
    assert said == [str(number) for number in range(1, COUNT + 1)]
    assert home.ask("logs", run_id, "--stream", "stderr") == "bad\n"
    told = json.loads(home.ask("status", run_id, "--json"))["metrics"]
    used = {one["name"]: one for one in told if one["source"] == "resource"}
    assert {"cpu_seconds", "cpu_percent", "memory_bytes", "peak_memory_bytes"} <= set(used)
    assert used["memory_bytes"]["count"] > 1


@pytest.fixture
def server() -> Iterator[Server]:
    with counted_downloads.server() as made:
        yield made


@contextlib.contextmanager
def folder_of_nodes() -> Iterator[Path]:
    """A path that is another folder on each node."""
    path = Path(f"/var/lib/anubis-test-{secrets.token_hex(4)}")
    try:
        yield path
    finally:
        for folder in (one for one in path.rglob("*") if one.is_dir() and not one.is_symlink()):
            folder.chmod(0o700)
        shutil.rmtree(path, ignore_errors=True)


def test_data_is_fetched_once_for_each_node_that_needs_it(
    home: ClusteredHome, second: str, server: Server
) -> None:
    data = f'[[data.sources]]\nsrc = "{server.uri}"\npath = "/data/train.csv"\n'
    fetched = []
    with folder_of_nodes() as datasets:
        home.environment["ANUBIS_KUBERNETES_DATASETS"] = str(datasets)
        for node in (second, FIRST, second):
            run_id = home.program("head -n 1 /data/train.csv", data + on(node))
            assert nodes(home, run_id) == {"benchmark": {node}}
            assert home.ask("logs", run_id) == "1,2,3\n"
            fetched.append(server.sent)
    assert fetched == [1, 2, 2]
