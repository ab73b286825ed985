"""Several processes on one folder: one transfers, and a killed one holds nobody up."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.dataset_cache.web_server import Page, Server

from anubis.adapters.dataset_cache.directory import DirectoryDatasetCache, journal
from anubis.domain.dataset import Reference
from anubis.domain.errors import StorageFull
from anubis.testing.contracts.dataset_cache import ignore

SIZE = 48 * 1024 * 1024
PATIENCE = 60

PROGRAM = """
import asyncio, pathlib, sys
from anubis.bootstrap import datasets
from anubis.domain.dataset import Reference
from anubis.settings.model import Settings

async def main(folder, uri):
    place = pathlib.Path(folder)
    cache = datasets.cache(Settings(home=place.parent, datasets=place))
    dataset = await cache.fetch(Reference(uri=uri), run=None, report=lambda progress: None)
    print(dataset.path)

asyncio.run(main(*sys.argv[1:]))
"""


@contextlib.contextmanager
def fetching(folder: Path, uri: str) -> Iterator[subprocess.Popen[str]]:
    """A process that fetches, which is gone afterwards."""
    command = [sys.executable, "-c", PROGRAM, str(folder), uri]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _until(is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def _path_from(process: subprocess.Popen[str]) -> Path:
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    return Path(output.strip())


def test_eight_processes_that_ask_at_once_transfer_once(folder: Path, server: Server) -> None:
    content = os.urandom(4 * 1024 * 1024)
    uri = server.put("/data", Page(content=content, pause=0.01))

    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(fetching(folder, uri)) for _ in range(8)]
        paths = {_path_from(process) for process in processes}

    [path] = paths
    assert path.read_bytes() == content
    assert server.sent == len(content)


def test_a_killed_transfer_frees_the_one_who_waits_who_goes_on_where_it_stopped(
    folder: Path, server: Server
) -> None:
    content = os.urandom(SIZE)
    page = Page(content=content, pause=0.004)
    uri = server.put("/data", page)
    partial = folder / "partial" / Reference(uri=uri).key

    with fetching(folder, uri) as first:
        _until(lambda: journal.progress(partial)[0] > SIZE // 4)
        with fetching(folder, uri) as second:
            first.kill()
            first.wait(PATIENCE)
            noted = journal.progress(partial)[0]
            page.pause = 0
            path = _path_from(second)

    assert path.read_bytes() == content
    # All that was noted is not sent again, only what was on its way.
    assert server.sent < 2 * SIZE - noted // 2
    assert server.sent - SIZE < SIZE - noted


async def test_a_disk_that_is_really_full_is_told_and_left_clean(
    tmp_path: Path, server: Server, cache: DirectoryDatasetCache, folder: Path
) -> None:
    with _small_disk(folder):
        for has_length in (True, False):
            page = Page(content=bytes(20 * 2**20), has_ranges=has_length, has_length=has_length)
            with pytest.raises(StorageFull, match=str(folder)):
                await cache.fetch(Reference(uri=server.put("/x", page)), run=None, report=ignore)
        assert list((folder / "partial").iterdir()) == []
        small = server.put("/small", Page(content=b"fits"))
        await cache.fetch(Reference(uri=small), run=None, report=ignore)


@contextlib.contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    """A disk of 16 MiB."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a file system can be mounted by root only, outside of containers")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)
