"""Runs with data over the original wire: sequence B, and the downloads of C and D."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .serving import PATIENCE, Service, serving
from .slow_server import slowly
from .test_original_wire import LAST, Curl, before, metrics

pytestmark = pytest.mark.acceptance

FETCHER = "fetcher-dispatcher"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("original")) as service:
        yield service


@pytest.fixture
def curl(service: Service, tmp_path: Path) -> Curl:
    return Curl(service.endpoint, tmp_path)


def sources(*addresses: object) -> str:
    """The part of a descriptor that names data."""
    return "".join(
        f'\n[[data.sources]]\nsrc = "{address}"\npath = "/data/{number}"\n'
        for number, address in enumerate(addresses)
    )


def test_a_run_with_data_is_told_as_sequence_b(curl: Curl, tmp_path: Path) -> None:
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    for path in (one, other):
        path.write_text("1, 2, 3")
    action = curl.submit("cat /data/0 /data/1", more=sources(one, other))

    received, _, *created = before(curl, action)
    assert curl.follow(action, LAST) == [
        received,
        (FETCHER, "PENDING", "Initiating downloads..."),
        (FETCHER, "PENDING", f"Preparing {one} for download..."),
        (FETCHER, "PENDING", f"Preparing {other} for download..."),
        (FETCHER, "PENDING", f"{one} downloaded..."),
        (FETCHER, "PENDING", f"{other} downloaded..."),
        (FETCHER, "SUCCEEDED", "All downloads processed"),
        *created,
        ("watcher", "SUCCEEDED", "Benchmark finished successfully"),
        metrics(curl, action),
        ("watcher", "SUCCEEDED", LAST),
    ]
    first, second, *_ = curl.poll(action)
    assert second["payload"]["src_event"]["payload"]["datasets"] == [
        {"src": str(path), "path": f"/data/{number}"} for number, path in enumerate((one, other))
    ]
    assert "toml" in first["payload"]


def test_a_download_that_fails_ends_the_run_and_says_why(curl: Curl, tmp_path: Path) -> None:
    missing = tmp_path / "missing.csv"
    action = curl.submit("true", more=sources(missing))

    said = curl.follow(action, LAST)

    [failed] = [one for one in said if "download failed" in one[2]]
    assert failed[:2] == (FETCHER, "FAILED")
    assert failed[2].startswith(f"{missing} download failed: '")
    assert said[-3:] == [
        (FETCHER, "FAILED", "Aborting execution"),
        ("watcher", "FAILED", "Benchmark failed"),
        ("watcher", "FAILED", LAST),
    ]
    assert "missing.csv" in curl.poll(action)[-1]["payload"]["reason"]


def test_a_download_is_canceled_with_its_run(curl: Curl) -> None:
    with slowly() as server:
        action = curl.submit("true", more=sources(server.address))
        assert server.asked.wait(PATIENCE)
        curl.follow(action, f"Preparing {server.address} for download...")
        curl.cancel(action)
        said = curl.follow(action, LAST)
        assert server.left.wait(PATIENCE)

    assert said[-6:] == [
        (FETCHER, "PENDING", "Canceling downloads..."),
        (FETCHER, "CANCELED", f"{server.address} download canceled..."),
        (FETCHER, "CANCELED", "Aborting execution"),
        ("executor", "SUCCEEDED", "Execution successfully cancelled..."),
        ("watcher", "CANCELED", "Benchmark cancelled - watch ended"),
        ("watcher", "CANCELED", LAST),
    ]
