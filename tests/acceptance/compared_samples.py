"""Samples as runs on several engines, and what of each is compared with the others."""

from __future__ import annotations

import collections
import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

from .clustered import SAMPLES, ClusteredHome


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
