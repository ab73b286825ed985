"""Every sample gives the same on Kubernetes as on the other engines, from the same descriptor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import real_parts
from tests.cluster import control

from . import clustered
from .clustered import SAMPLES, ClusteredHome, samples_in_cluster
from .compared_samples import NAMED, Result, Sample, result, submit

__all__ = ["samples_in_cluster"]

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.cluster,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("samples_in_cluster"),
]

ENGINES = ("process", "docker", "kubernetes")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ClusteredHome]:
    with clustered.home(tmp_path) as made:
        yield made


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[ClusteredHome]:
    with clustered.remote_home(tmp_path) as (made, _):
        yield made


def must_be_alike(home: ClusteredHome, sample: Sample) -> Result:
    """Run it on all engines at once, and compare; what it came to."""
    if sample.name == "mpi":
        real_parts.need_mpi()
    runs = {engine: submit(home, sample, engine) for engine in ENGINES}
    found = {engine: result(home, sample, run_id) for engine, run_id in runs.items()}
    for part in ("outcome", "metrics", "lines", "warnings"):
        parts = {engine: getattr(one, part) for engine, one in found.items()}
        assert parts["kubernetes"] == parts["docker"], part
        assert parts["kubernetes"] == parts["process"], part
    return found["kubernetes"]


def test_no_sample_is_left_out() -> None:
    assert set(NAMED) == {folder.name for folder in SAMPLES.iterdir()}


def test_hello_world_is_the_same_on_every_engine_and_what_it_uses_is_measured(
    home: ClusteredHome,
) -> None:
    found = must_be_alike(home, NAMED["hello-world"])
    assert found.outcome["state"] == "SUCCEEDED"
    assert found.lines["benchmark stdout"][-1].startswith("epoch 50/50 loss=")
    used = {name: one for name, one in found.used.items() if name.startswith("benchmark/")}
    names = ("cpu_percent", "cpu_seconds", "memory_bytes", "peak_memory_bytes")
    assert {f"benchmark/{name}" for name in names} <= set(used)
    assert used["benchmark/cpu_seconds"]["last"] > 1
    assert used["benchmark/peak_memory_bytes"]["last"] > 10_000_000
    assert used["benchmark/processes"]["max"] == 1


@pytest.mark.parametrize("name", sorted(set(NAMED) - {"hello-world"}))
def test_a_sample_is_the_same_on_every_engine(home: ClusteredHome, name: str) -> None:
    found = must_be_alike(home, NAMED[name])
    assert found.outcome["state"] == ("FAILED" if name == "failing" else "SUCCEEDED")
    assert found.metrics
    assert found.lines


@pytest.mark.parametrize("name", ["script-mode", "dataset", "inference"])
def test_a_service_gives_the_same_on_every_engine(remote: ClusteredHome, name: str) -> None:
    assert must_be_alike(remote, NAMED[name]).outcome["state"] == "SUCCEEDED"


@pytest.mark.cluster(alone=True)
def test_mpi_is_the_same_where_the_mpi_operator_is_installed(home: ClusteredHome) -> None:
    with control.mpi_operator():
        found = must_be_alike(home, NAMED["mpi"])
        home.must_be_clean()
    assert found.outcome["state"] == "SUCCEEDED"
    assert found.outcome["unit"] == "launcher"
