"""Podman speaks Docker's API well enough for us."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests import docker_images
from tests.docker_engines import opened

from anubis.domain.observation import EmittedChunk, EndCause, Stream
from anubis.testing.contracts.engine import (
    a_new_run,
    a_plan,
    end,
    output,
    run,
    until_it_speaks,
    watch,
)

SETTINGS = """\
[engine]
init_path = "{init}"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
"""
"""What Podman sets by itself is more than a test machine may have."""


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Podman service with the small image, for as long as these tests last."""
    init = shutil.which("catatonit") or shutil.which("docker-init")
    if not shutil.which("podman") or not init or os.geteuid():
        pytest.skip("podman, an init for it, or root is missing")
    folder = tmp_path_factory.mktemp("podman")
    (folder / "containers.conf").write_text(SETTINGS.format(init=init))
    environment = {**os.environ, "CONTAINERS_CONF": str(folder / "containers.conf")}
    address = f"unix://{folder}/socket"
    words = ["podman", "system", "service", "--time=0", address]
    with (folder / "log").open("wb") as log:
        service = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
    try:
        give_up = time.monotonic() + 30
        while not (folder / "socket").exists():
            if service.poll() is not None or time.monotonic() > give_up:
                pytest.skip(f"podman does not start: {(folder / 'log').read_text()[-500:]}")
            time.sleep(0.05)
        docker_images.busybox()  # makes the archive that is imported here too
        archive = str(docker_images.BUSYBOX.archive)
        tag = docker_images.BUSYBOX.tag
        done = subprocess.run(["podman", "import", archive, tag], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        yield address
    finally:
        service.terminate()
        service.wait()
        subprocess.run(["podman", "image", "rm", docker_images.BUSYBOX.tag], capture_output=True)


IMAGE = f"localhost/{docker_images.BUSYBOX.tag}"


async def test_a_container_of_podman_is_seen_whole(podman: str, tmp_path: Path) -> None:
    emit = "echo '{}' > $BENCHMARK_AI_FIFO_FILEPATH"
    text = rf"printf 'a\377b\n\nend'; printf oh >&2; {emit}; exit 3"
    async with opened(tmp_path, address=podman) as engine:
        seen = await run(engine, a_plan("sh", "-c", text, image=IMAGE))
        assert output(seen) == b"a\xffb\n\nend"
        assert output(seen, Stream.STDERR) == b"oh"
        assert b"".join(one.data for one in seen if isinstance(one, EmittedChunk)) == b"{}\n"
        assert (end(seen).cause, end(seen).exit_code) == (EndCause.EXITED, 3)
        assert '"is_podman": true' in (await engine.fingerprint(a_plan("sh", image=IMAGE))).machine


async def test_a_container_of_podman_is_stopped(podman: str, tmp_path: Path) -> None:
    async with opened(tmp_path, address=podman) as engine:
        run_id = a_new_run()
        await engine.start(run_id, a_plan("sh", "-c", "echo here; exec sleep 600", image=IMAGE))
        await until_it_speaks(engine, run_id)
        await engine.stop(run_id, grace=timedelta(seconds=10), cause=EndCause.CANCELED)
        ended = end(await watch(engine, run_id))
        assert (ended.cause, ended.signal) == (EndCause.CANCELED, 15)
        await engine.remove(run_id)
        assert list(await engine.leftovers()) == []
