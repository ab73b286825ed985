"""Every sample does what its descriptor says, through the installed command, on every engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import real_parts

SAMPLES = Path(__file__).parents[2] / "samples"

pytestmark = pytest.mark.acceptance
COLUMNS = ("embedded", "remote")


@pytest.fixture(params=["process", "docker"])
def engine(request: pytest.FixtureRequest) -> str:
    """Where a sample runs, with its image where it needs one."""
    if request.param == "docker":
        request.getfixturevalue("sample_images")
    return str(request.param)


def run(home: Any, engine: str, sample: str, *options: str) -> str:
    """Run a sample to its end, which must be good; what was said of it."""
    file = str(SAMPLES / sample / "descriptor.toml")
    result = home.call("run", "--engine", engine, *options, file)
    said = str(result.stdout.decode() + result.stderr.decode())
    assert result.returncode == 0, said
    assert "SUCCEEDED" in said
    return said


def metrics(home: Any, unit: str = "benchmark") -> dict[str, dict[str, Any]]:
    answer = json.loads(home.ask("metrics", "last", "--json"))
    return {metric["name"]: metric for metric in answer["metrics"] if metric["unit"] == unit}


def lines(home: Any, unit: str) -> list[str]:
    return [str(line) for line in home.ask("logs", "--unit", unit).splitlines()]


def test_there_are_no_samples_without_a_test() -> None:
    tested = {"hello-world", "failing", "noisy", "inference", "mpi", "dataset", "script-mode"}
    assert {folder.name for folder in SAMPLES.iterdir()} == tested


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


def test_inference_measures_a_server_from_both_sides(home: Any, engine: str) -> None:
    said = run(home, engine, "inference")
    assert "client exited with code 0" in said
    client, server = metrics(home, "client"), metrics(home, "server")
    assert client["throughput"]["count"] == client["latency_mean"]["count"] == 5
    assert client["throughput"]["source"] == "pattern"
    assert client["latency_mean"]["source"] == "emitted"
    percentiles = [client[f"latency_p{percent}"]["last"] for percent in (50, 95, 99)]
    assert 0 < percentiles[0] <= percentiles[1] <= percentiles[2]
    assert client["accuracy"]["last"] > 0.9
    assert server["test_accuracy"]["last"] > 0.9
    assert "throughput" not in server
    assert "requests=2000" in lines(home, "client")[-1]
    assert lines(home, "server").count("POST /predict 200") == 2000


def test_the_client_never_asks_before_the_server_has_answered_its_probe(
    home: Any, engine: str
) -> None:
    run(home, engine, "inference")
    asked = [line for line in lines(home, "server") if line.startswith(("GET", "POST"))]
    first = asked.index("POST /predict 200")
    assert "GET /health 200" in asked[:first]
    assert set(asked[:first]) <= {"GET /health 503", "GET /health 200"}


def test_mpi_trains_one_model_on_two_processes(home: Any, engine: str) -> None:
    if engine == "process":
        real_parts.need_mpi()
    said = run(home, engine, "mpi")
    assert "launcher exited with code 0" in said
    found = metrics(home, "rank-0")
    assert found["loss"]["count"] == found["throughput"]["count"] == 5
    assert found["loss"]["last"] < found["loss"]["first"]
    assert found["efficiency"]["min"] > 0
    for rank in (0, 1):
        said_by_it = lines(home, f"rank-{rank}")
        assert said_by_it[0].startswith(f"process {rank} of 2 on ")
        assert said_by_it[-1] == f"process {rank} of 2 learned from 100 batches"
    assert len(lines(home, "rank-0")) == 7
    assert len(lines(home, "rank-1")) == 2


def test_dataset_is_fetched_once_and_read_from_the_cache(home: Any, engine: str) -> None:
    run(home, engine, "dataset")
    found = metrics(home)
    assert found["rows"]["last"] == 4000
    assert found["slope"]["last"] == pytest.approx(2.5, abs=0.05)
    assert found["throughput"]["count"] == found["bandwidth"]["count"] == 20


def test_script_mode_runs_code_that_came_with_the_descriptor(home: Any, engine: str) -> None:
    run(home, engine, "script-mode", "--script", str(SAMPLES / "script-mode" / "src"))
    assert metrics(home)["pi"]["last"] == pytest.approx(3.14, abs=0.1)
