"""Every sample does what its descriptor says, through the installed command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SAMPLES = Path(__file__).parents[2] / "samples"

pytestmark = pytest.mark.acceptance
COLUMNS = ("embedded", "remote")


def metrics(home: Any) -> dict[str, dict[str, Any]]:
    answer = json.loads(home.ask("metrics", "last", "--json"))
    return {metric["name"]: metric for metric in answer["metrics"]}


def test_there_are_no_samples_without_a_test() -> None:
    assert {folder.name for folder in SAMPLES.iterdir()} == {"hello-world", "failing", "noisy"}


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*/*.toml")), ids=lambda p: p.parent.name)
def test_a_sample_has_no_problems_and_no_old_spellings(home: Any, sample: Path) -> None:
    result = home.call("validate", str(sample))
    assert result.returncode == 0
    assert b"deprecat" not in result.stdout + result.stderr


def test_hello_world_learns_and_reports_by_patterns_and_by_emit(home: Any) -> None:
    result = home.call("run", str(SAMPLES / "hello-world" / "descriptor.toml"))
    assert result.returncode == 0, result.stdout.decode() + result.stderr.decode()
    assert b"SUCCEEDED" in result.stdout
    found = metrics(home)
    assert found["loss"]["source"] == found["accuracy"]["source"] == "pattern"
    assert found["throughput"]["source"] == found["epoch"]["source"] == "emitted"
    assert found["loss"]["count"] == found["throughput"]["count"] == found["epoch"]["last"] == 50
    assert found["accuracy"]["last"] > 0.95
    assert found["loss"]["last"] < found["loss"]["first"] / 5
    assert found["throughput"]["min"] > 0
    assert found["memory_bytes"]["min"] > 1_000_000


def test_failing_says_why_and_keeps_what_it_measured(home: Any) -> None:
    result = home.call("run", str(SAMPLES / "failing" / "descriptor.toml"))
    assert result.returncode == 1
    text = result.stdout.decode()
    assert "exited with code 3" in text
    assert "checkpoint is unreadable: expected 4096 bytes, got 17" in text
    assert metrics(home)["progress"]["last"] == 40


def test_noisy_has_the_mean_and_the_spread_it_claims(home: Any) -> None:
    assert home.call("run", str(SAMPLES / "noisy" / "descriptor.toml")).returncode == 0
    latency = metrics(home)["latency"]
    assert latency["count"] == 2000
    # Six standard errors: once in five hundred million runs by chance.
    assert latency["mean"] == pytest.approx(10.0, abs=6 * (10 / 3) / 2000**0.5)
    assert latency["std"] == pytest.approx(10 / 3, rel=0.2)
