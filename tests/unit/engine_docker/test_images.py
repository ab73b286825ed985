"""Images: who we are to a registry, and how far a pull is."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from anubis.adapters.engine.docker import credentials
from anubis.adapters.engine.docker.images import Layers


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Docker's own settings are."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("busybox", credentials.HUB),
        ("library/busybox:1", credentials.HUB),
        ("docker.io/library/busybox", credentials.HUB),
        ("ghcr.io/team/image:2", "ghcr.io"),
        ("localhost/image", "localhost"),
        ("registry:5000/image@sha256:00", "registry:5000"),
    ],
)
def test_the_registry_of_an_image_is_in_its_name(image: str, registry: str) -> None:
    assert credentials.registry_of(image) == registry


async def test_nobody_is_known_where_nobody_logged_in(folder: Path) -> None:
    assert await credentials.find("ghcr.io/team/image") is None
    (folder / "config.json").write_text("not JSON")
    assert await credentials.find("ghcr.io/team/image") is None


async def test_what_docker_login_wrote_is_used(folder: Path) -> None:
    word = base64.b64encode(b"me:pass:word").decode()
    (folder / "config.json").write_text(json.dumps({"auths": {"ghcr.io": {"auth": word}}}))
    assert await credentials.find("ghcr.io/a") == {"username": "me", "password": "pass:word"}
    assert await credentials.find("quay.io/a") is None


async def test_a_helper_is_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = folder / "docker-credential-mine"
    helper.write_text(
        '#!/bin/sh\nread name\necho "{\\"Username\\": \\"me\\", \\"Secret\\": \\"$name\\"}"\n'
    )
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    (folder / "config.json").write_text(json.dumps({"credHelpers": {"ghcr.io": "mine"}}))
    assert await credentials.find("ghcr.io/a") == {"username": "me", "password": "ghcr.io"}


def test_progress_is_summed_over_the_layers() -> None:
    layers = Layers()
    assert not layers.note({"status": "Pulling fs layer", "id": "a"})
    assert not layers.total
    assert layers.note(
        {"status": "Downloading", "id": "a", "progressDetail": {"current": 1, "total": 10}}
    )
    layers.note({"status": "Downloading", "id": "b", "progressDetail": {"current": 2, "total": 20}})
    assert [layers.done, layers.total] == [3, 30]
    layers.note({"status": "Download complete", "id": "a"})
    assert [layers.done, layers.total] == [12, 30]
