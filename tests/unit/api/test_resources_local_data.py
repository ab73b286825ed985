"""Where files of the service are nobody's business, no descriptor and no wish can name them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import httpx
import pytest
from tests.unit.api.conftest import World

from anubis.entrypoints.api import app

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
TOML = """\
spec_version = "0.1.0"
info.description = "For a test"
env.docker_image = "train:1"
ml.benchmark_code = "cat /data/x"
[[data.sources]]
src = "{uri}"
path = "/data/x"
"""


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> httpx.AsyncClient:
    """Somebody who asks a service that does not let its files be named."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    world = World(tmp_path)
    settings = dataclasses.replace(world.service.settings, local_data=False)
    application = dataclasses.replace(world.service.application, settings=settings)
    world.service = dataclasses.replace(world.service, settings=settings, application=application)
    world.app = app.create(world.service)
    return world.asking()


@pytest.mark.parametrize("uri", [TOKEN, f"file://{TOKEN}", f"FILE:{TOKEN}", f"//{TOKEN}"])
@pytest.mark.parametrize("route", ["runs", "descriptors/manifest"])
async def test_no_descriptor_reads_files_of_the_service(
    closed: httpx.AsyncClient, route: str, uri: str
) -> None:
    async with closed:
        refused = await closed.post(f"/{route}", json={"descriptor": TOML.format(uri=uri)})

    assert refused.status_code == 422, refused.text
    assert "ANUBIS_LOCAL_DATA" in refused.json()["detail"]
    assert "data.sources" in refused.json()["detail"]


@pytest.mark.parametrize("uri", [TOKEN, f"file://{TOKEN}"])
async def test_the_cache_does_not_take_them_either(closed: httpx.AsyncClient, uri: str) -> None:
    async with closed:
        refused = await closed.post("/datasets", json={"uri": uri})

    assert refused.status_code == 422, refused.text
    assert "ANUBIS_LOCAL_DATA" in refused.json()["detail"]


async def test_addresses_that_others_can_reach_are_data_as_ever(closed: httpx.AsyncClient) -> None:
    wanted = TOML.format(uri="https://data.example/x")
    async with closed:
        told = await closed.post("/descriptors/manifest", json={"descriptor": wanted})

    assert told.status_code == 200, told.text
