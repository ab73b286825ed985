"""Images are pulled from a registry as the policy says, with progress, and known by their digest.

The registry is a small one that speaks just enough of the distribution API, over HTTP on loopback,
which Docker takes for trusted.
"""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import json
import os
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import docker_images, real_parts
from tests.docker_engines import opened

from anubis.domain.dataset import Progress
from anubis.domain.errors import ImageUnavailable
from anubis.testing.contracts.engine import a_plan

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Registry:
    """One image of one layer, called ``small:1``."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w") as file:
            info = tarfile.TarInfo("data")
            info.size = 600_000
            file.addfile(info, io.BytesIO(os.urandom(info.size)))
        packed = gzip.compress(layer.getvalue())
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Cmd": ["/data"]},
                "rootfs": {"type": "layers", "diff_ids": [digest(layer.getvalue())]},
            }
        ).encode()
        self.blobs = {digest(one): one for one in (packed, config)}
        self.layer_bytes = len(packed)
        self.manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": {
                    "mediaType": "application/vnd.docker.container.image.v1+json",
                    "size": len(config),
                    "digest": digest(config),
                },
                "layers": [
                    {
                        "mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip",
                        "size": len(packed),
                        "digest": digest(packed),
                    }
                ],
            }
        ).encode()

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Type and content of what lies at a path."""
        self.asked.append(path)
        name = path.rpartition("/")[2]
        if path == "/v2/":
            return "application/json", b"{}"
        if path in ("/v2/small/manifests/1", f"/v2/small/manifests/{digest(self.manifest)}"):
            return MANIFEST, self.manifest
        if path.startswith("/v2/small/blobs/") and name in self.blobs:
            return "application/octet-stream", self.blobs[name]
        return None


def handler(registry: Registry) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = registry.answer(self.path)
            if found is None:
                content = b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "no such thing"}]}'
                kind = "application/json"
            else:
                kind, content = found
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
            self.send_header("Docker-Content-Digest", digest(content))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815 (the library's spelling)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def registry() -> Iterator[tuple[Registry, str]]:
    """A registry, and the name under which its image is reached."""
    real_parts.need_docker()
    known = Registry()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(known))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    name = f"127.0.0.1:{server.server_port}/small:1"
    yield known, name
    server.shutdown()
    server.server_close()
    thread.join()
    docker_images.docker("image", "rm", name, check=False)


async def test_a_missing_image_is_pulled_with_progress_and_known_by_its_digest(
    registry: tuple[Registry, str], tmp_path: Path
) -> None:
    known, name = registry
    seen: list[Progress] = []
    async with opened(tmp_path, pull="missing") as engine:
        plan = a_plan("/data", image=name)
        await engine.prepare(plan, seen.append)
        assert seen[0] == Progress(uri=name, done_bytes=0, total_bytes=None)
        assert seen[-1].done_bytes == seen[-1].total_bytes == known.layer_bytes
        assert digest(known.manifest) in (await engine.fingerprint(plan)).machine
        known.asked.clear()
        await engine.prepare(plan, seen.append)
        assert known.asked == []


async def test_the_policy_always_asks_the_registry_each_time(
    registry: tuple[Registry, str], tmp_path: Path
) -> None:
    known, name = registry
    async with opened(tmp_path, pull="always") as engine:
        await engine.prepare(a_plan("/data", image=name), lambda _: None)
        known.asked.clear()
        await engine.prepare(a_plan("/data", image=name), lambda _: None)
    assert any("manifests" in path for path in known.asked)


async def test_an_image_that_the_registry_does_not_have_is_told_in_its_words(
    registry: tuple[Registry, str], tmp_path: Path
) -> None:
    missing = registry[1].replace("small:1", "small:2")
    async with opened(tmp_path, pull="missing") as engine:
        with pytest.raises(ImageUnavailable, match=r"small:2.*(no such thing|unknown|not found)"):
            await engine.prepare(a_plan("/data", image=missing), lambda _: None)
