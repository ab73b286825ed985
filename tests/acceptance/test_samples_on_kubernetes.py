"""Every sample gives the same on Kubernetes as on the other engines, from the same descriptor."""

from __future__ import annotations

import collections
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests import real_parts
from tests.cluster import control

from . import clustered
from .clustered import SAMPLES, ClusteredHome, samples_in_cluster

__all__ = ["samples_in_cluster"]

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.cluster,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("samples_in_cluster"),
]

ENGINES = ("process", "docker", "kubernetes")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A sample, and what of its output is another one each time, on any engine."""

    name: str
    varies: str = r"\0"  #: parts of lines
    unordered: str = r"\0"  #: lines that come when they come, as often as they come
    steady: tuple[str, ...] = ()  #: metrics whose values never vary
    code: str = ""  #: a folder to submit with it


ALL = (
    Sample(name="hello-world", steady=("loss", "accuracy", "epoch")),
    Sample(name="failing", steady=("progress",)),
    Sample(name="noisy", varies=r"latency [0-9.]+"),
    Sample(
        name="inference",
        varies=r"(training_time|throughput|p[0-9]+)=[0-9.]+|asking .*|port [0-9]+",
        unordered=r"GET /health (503|200)",
        steady=("accuracy", "test_accuracy", "round"),
    ),
    Sample(
        name="mpi",
        varies=r"(throughput|efficiency)=[0-9.]+|on [a-z0-9-]+$",
        steady=("loss",),
    ),
    Sample(name="script-mode", varies=r"throughput=[0-9.]+", steady=("pi",), code="src"),
    Sample(name="dataset", varies=r"per_second=[0-9]+", steady=("rows", "slope")),
)
NAMED = {sample.name: sample for sample in ALL}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What somebody learns from a run, without what differs each time."""

    outcome: Mapping[str, object]
    metrics: Mapping[str, object]
    lines: Mapping[str, list[str]]
    warnings: list[str]
    used: Mapping[str, Any]  #: of the machine


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ClusteredHome]:
    with clustered.home(tmp_path) as made:
        yield made


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[ClusteredHome]:
    with clustered.remote_home(tmp_path) as (made, _):
        yield made


def submit(home: ClusteredHome, sample: Sample, engine: str) -> str:
    folder = SAMPLES / sample.name
    code = ("--script", str(folder / sample.code)) if sample.code else ()
    file = str(folder / "descriptor.toml")
    return home.ask("submit", "--engine", engine, *code, file).strip()


def result(home: ClusteredHome, sample: Sample, run_id: str) -> Result:
    home.ended(run_id)
    told = json.loads(home.ask("status", run_id, "--json"))
    return Result(
        outcome=told["run"]["outcome"],
        metrics={called(one): metric(sample, one) for one in told["metrics"] if is_own(one)},
        lines=lines(home, sample, run_id),
        warnings=[event["message"] for event in told["events"] if event["kind"] == "warning"],
        used={called(one): one for one in told["metrics"] if not is_own(one)},
    )


def called(told: Any) -> str:
    return f"{told['unit']}/{told['name']}"


def is_own(told: Any) -> bool:
    """Whether a metric is the benchmark's own."""
    return bool(told["source"] != "resource")


def metric(sample: Sample, told: Any) -> Mapping[str, object]:
    """All numbers where they never vary; else how many there are."""
    if told["name"] in sample.steady:
        return {name: rounded(value) for name, value in told.items()}
    return {name: told[name] for name in ("source", "units", "count")}


def rounded(value: object) -> object:
    """A mean depends in its last digit on how many values came at once."""
    return f"{value:.9g}" if isinstance(value, float) else value


def lines(home: ClusteredHome, sample: Sample, run_id: str) -> Mapping[str, list[str]]:
    """By unit and stream, in order."""
    found = collections.defaultdict(list)
    for line in home.ask("logs", run_id, "--json").splitlines():
        one = json.loads(line)
        if not re.fullmatch(sample.unordered, one["text"]):
            text = re.sub(sample.varies, "...", one["text"])
            found[f"{one['unit']} {one['stream']}"].append(text)
    return dict(found)


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
