"""What Kubernetes would get, over HTTP."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

TOML = """\
spec_version = "0.1.0"
info.description = "For a test"
env.docker_image = "train:1"
ml.benchmark_code = "true"
"""
AS_IT_IS = {"Content-Type": "application/toml"}


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


async def test_the_objects_of_a_run_are_told_and_nothing_is_stored(ada: httpx.AsyncClient) -> None:
    told = await ada.post(
        "/descriptors/manifest", content=TOML, headers=AS_IT_IS, params={"namespace": "team"}
    )
    assert told.status_code == 200, told.text
    answer = told.json()
    [job] = answer["objects"]
    assert (job["kind"], job["metadata"]["namespace"]) == ("Job", "team")
    assert job["metadata"]["labels"]["client-id"] == "ada"
    assert answer["notes"][0].startswith("no cluster was asked")
    assert (await ada.get("/runs")).json()["runs"] == []


async def test_what_kubernetes_cannot_do_is_told_with_its_field(ada: httpx.AsyncClient) -> None:
    bad = TOML.replace("env.docker_image", "# ")
    refused = await ada.post("/descriptors/manifest", json={"descriptor": bad})
    assert refused.status_code == 422
    assert "env.docker_image" in refused.json()["detail"]
