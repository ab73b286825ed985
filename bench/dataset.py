"""The dataset cache: warm hits of any size, cold fetch against curl, eight who ask at once.

A warm hit must cost at most 5 ms, whatever the size: a small file and a large sparse one. A cold
fetch over loopback must reach 0.95 of curl, though curl neither checks nor syncs what it wrote; the
second line shows curl with ``sha256sum`` and ``sync``, which is what we do. They take turns; the
median and the best of some rounds are shown, since on a busy machine they differ a lot. Eight
processes that ask for the same at once must transfer it once, by the server's own log.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from anubis.bootstrap import datasets
from anubis.domain.dataset import Dataset, Progress, Reference, checksum
from anubis.domain.run import RunId
from anubis.ports.dataset_cache import DatasetCache
from anubis.settings.model import Settings
from bench.file_server import FileServer, serving

GIB = 1024**3
HITS = 50
ROUNDS = 5
ASKERS = 8
RUN = RunId("00000000-0000-7000-8000-000000000001")

ASKER = """
import asyncio, pathlib, sys
from bench import dataset
asyncio.run(dataset.fetch(dataset.cache(pathlib.Path(sys.argv[1])), sys.argv[2]))
"""


def cache(folder: Path) -> DatasetCache:
    """As a command wires it."""
    return datasets.cache(Settings(home=folder, datasets=folder / "datasets"))


def ignore(_: Progress) -> None:
    """Nobody looks."""


async def fetch(where: DatasetCache, uri: str, digest: str = "") -> Dataset:
    """As a run does."""
    return await where.fetch(Reference(uri=uri, checksum=checksum(digest)), run=RUN, report=ignore)


async def _warm(folder: Path, name: str, size: int) -> None:
    original = folder / name
    with original.open("wb") as file:
        file.truncate(size)
    held = cache(folder)
    digest = (await fetch(held, str(original))).digest
    await fetch(held, str(original), digest)
    took = {"with its checksum": digest, "without, source asked": ""}
    for words, wanted in took.items():
        times = []
        for _ in range(HITS):
            began = time.perf_counter()
            await fetch(cache(folder), str(original), wanted)
            times.append((time.perf_counter() - began) * 1e3)
        median, worst = statistics.median(times), max(times)
        print(f"warm hit, {size / 1e6:>9,.0f} MB, {words:<22}{median:7.2f} ms, worst {worst:.2f}")


def _timed(work: Callable[[], None]) -> float:
    os.sync()  # what the last round left to write must not slow this one
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _curl(address: str, target: Path) -> None:
    subprocess.run(["curl", "-sf", "-o", str(target), address], check=True)


def _curl_and_check(address: str, target: Path) -> None:
    _curl(address, target)
    subprocess.run(["sha256sum", str(target)], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["sync", str(target)], check=True)


def _ours(address: str, folder: Path) -> None:
    asyncio.run(fetch(cache(folder), address))


def _cold(address: str, folder: Path, size: int) -> None:
    ways: dict[str, Callable[[Path], None]] = {
        "curl": lambda place: _curl(address, place / "out"),
        "curl, sha256sum, sync": lambda place: _curl_and_check(address, place / "out"),
        "ours, checked and synced": lambda place: _ours(address, place),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            with tempfile.TemporaryDirectory(dir=folder) as place:
                seconds[name].append(_timed(functools.partial(way, Path(place))))
    print(f"\n\n{'':<40}{'median MB/s':>12}{'x curl':>8}{'best MB/s':>12}{'x curl':>8}")
    for name, times in seconds.items():
        cells = []
        for pick in (statistics.median, min):
            rate = size / pick(times) / 1e6
            cells.append(f"{rate:>12.0f}{pick(seconds['curl']) / pick(times):>8.2f}")
        print(f"cold fetch, {name:<28}{''.join(cells)}")


def _at_once(server: FileServer, folder: Path, size: int) -> None:
    before = server.sent()
    began = time.perf_counter()
    command = [sys.executable, "-c", ASKER, str(folder), f"{server.address}/large"]
    processes = [subprocess.Popen(command) for _ in range(ASKERS)]
    codes = [process.wait() for process in processes]
    took = time.perf_counter() - began
    sent = server.sent() - before
    print(
        f"\n{ASKERS} processes at once: {codes.count(0)} have it after {took:.1f} s; "
        f"the server sent {sent / size:.3f} times its size (goal: 1)"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=1024, help="of the cold fetch")
    parser.add_argument("--warm-gigabytes", type=int, default=10)
    options = parser.parse_args()
    size = options.megabytes * 1024**2
    with tempfile.TemporaryDirectory(prefix="anubis-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # nginx, started by root, reads as somebody else
        # In a folder that goes at once: twenty gigabytes of it fill the machine's memory, and
        # whoever needs memory next would have to free it first.
        with tempfile.TemporaryDirectory(dir=folder) as warm:
            asyncio.run(_warm(Path(warm), "small", 10**6))
            asyncio.run(_warm(Path(warm), "sparse", options.warm_gigabytes * GIB))
        root, work = folder / "root", folder / "work"
        root.mkdir()
        work.mkdir()
        with (root / "large").open("wb") as file:
            for _ in range(options.megabytes):
                file.write(os.urandom(1024**2))
        with serving(root, work) as server:
            print(f"\n{options.megabytes} MiB over loopback from {server.name}", end="")
            _cold(f"{server.address}/large", folder, size)
            _at_once(server, folder, size)


if __name__ == "__main__":
    main()
