"""A run on the Docker engine against ``docker run --rm`` of the same command.

Both take turns in each round, so that a slow minute of the machine hits both alike. Ours is a whole
run on an installation that is up: submit, queue, container, collection, and the end stored; the
container is removed after that, as is part of ``docker run --rm``, so a round waits for it before
the other's turn. The image is a statically linked BusyBox, made here.
"""

from __future__ import annotations

import asyncio
import io
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from anubis.bootstrap.application import Application
from anubis.domain.document import Document
from anubis.domain.run import RunState
from bench import installation

ROUNDS = 25
GOAL_RATIO = 1.0
IMAGE = "anubis-bench/busybox:1"
COMMAND = "/bin/busybox true"

PEER, STORED, SEEN = "docker run --rm", "Anubis, submit to stored", "Anubis, submit to seen"

NOTHING = Document(
    name="nothing.toml",
    directory="",
    content=f"""\
spec_version = "0.1.0"

[info]
description = "Does nothing in a container: what remains is our overhead"
execution_engine = "docker"

[env]
docker_image = "{IMAGE}"

[ml]
benchmark_code = "{COMMAND}"
""".encode(),
)

Timings = dict[str, list[float]]


def _make_image() -> None:
    """One program and nothing else: nothing can be pulled where this may run."""
    program = shutil.which("busybox")
    if program is None:
        sys.exit("busybox is not installed (Debian package busybox-static)")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as file:
        file.add(program, "bin/busybox")
    words = ["docker", "import", "-", IMAGE]
    subprocess.run(words, input=archive.getvalue(), check=True, stdout=subprocess.DEVNULL)


def _peer() -> float:
    began = time.perf_counter()
    subprocess.run(["docker", "run", "--rm", IMAGE, *COMMAND.split()], check=True)
    return time.perf_counter() - began


async def _ours(application: Application, folder: Path) -> tuple[float, float]:
    """Seconds until the end was stored, and until it was seen."""
    began, clock = time.perf_counter(), time.time()
    run = await installation.run_to_end(application, NOTHING)
    seen = time.perf_counter() - began
    assert run.state is RunState.SUCCEEDED, run.outcome
    assert run.ended_at is not None, "a run that succeeded has ended"
    while (folder / run.id).exists():  # noqa: ASYNC110 (a file tells no event)
        await asyncio.sleep(0.01)
    return run.ended_at.timestamp() - clock, seen


async def _measure() -> Timings:
    seconds: Timings = {PEER: [], STORED: [], SEEN: []}
    async with installation.installation(slots=1) as application:
        folder = application.settings.docker
        await _ours(application, folder)  # the first one loads the library
        await asyncio.to_thread(_peer)
        for _ in range(ROUNDS):
            seconds[PEER].append(await asyncio.to_thread(_peer))
            stored, seen = await _ours(application, folder)
            seconds[STORED].append(stored)
            seconds[SEEN].append(seen)
    return seconds


def _report(seconds: Timings) -> None:
    peer = statistics.median(seconds[PEER])
    print(f"{'':<28}{'median ms':>10}{'best':>8}{'x docker':>10}{'rounds':>8}")
    for name, values in seconds.items():
        median = statistics.median(values)
        figures = f"{median * 1e3:>10.0f}{min(values) * 1e3:>8.0f}{median / peer:>10.2f}"
        print(f"{name:<28}{figures}{len(values):>8}")
    ratio = statistics.median(seconds[STORED]) / peer
    verdict = "reached" if ratio <= GOAL_RATIO else "MISSED"
    print(f"\ngoal of at most {GOAL_RATIO:g}x {PEER}: {verdict} ({ratio:.2f}x)")


def main() -> None:
    if shutil.which("docker") is None:
        sys.exit("docker is not installed")
    _make_image()
    try:
        seconds = asyncio.run(_measure())
    finally:
        subprocess.run(["docker", "image", "rm", IMAGE], check=False, stdout=subprocess.DEVNULL)
    _report(seconds)


if __name__ == "__main__":
    main()
