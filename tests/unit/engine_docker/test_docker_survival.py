"""A container outlives everybody who watches it, and nothing it said is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

from tests import docker_images
from tests.docker_engines import ADDRESS, left, opened

from anubis.adapters.engine.docker.engine import DockerEngine
from anubis.adapters.engine.process.guardian import files
from anubis.domain import plan as plans
from anubis.domain.observation import (
    EmittedChunk,
    EndCause,
    Observation,
    OutputChunk,
    ResourceReading,
)
from anubis.domain.plan import Plan
from anubis.domain.run import RunId
from anubis.testing.contracts.engine import a_new_run, a_plan, end, output, watch

LINES = 40
TALKER = f"""
i=0
while [ $i -lt {LINES} ]; do
  i=$((i+1))
  echo line $i
  echo '{{"n": '$i'}}' > $BENCHMARK_AI_FIFO_FILEPATH
  sleep 0.1
done
exit 5
"""
SERVICE = """
import asyncio, sys
from pathlib import Path
from anubis.adapters.engine.docker.engine import DockerEngine
from anubis.domain import plan as plans

async def main():
    directory, address, run_id, text = sys.argv[1:]
    async with DockerEngine(Path(directory), address, pull="never", revive=None) as engine:
        await engine.start(run_id, plans.from_json(text))
        async for seen in engine.observe(run_id):
            print(type(seen).__name__, flush=True)

asyncio.run(main())
"""


def talker(image: str) -> Plan:
    """Says and emits a line at a time, for some seconds."""
    return a_plan("sh", "-c", TALKER, image=image)


def assert_whole(seen: list[Observation]) -> None:
    """All that the talker does was seen, once."""
    said = b"".join(b"line %d\n" % n for n in range(1, LINES + 1))
    emitted = b"".join(b'{"n": %d}\n' % n for n in range(1, LINES + 1))
    assert output(seen) == said
    assert b"".join(o.data for o in seen if isinstance(o, EmittedChunk)) == emitted
    assert len([o for o in seen if isinstance(o, ResourceReading)]) >= 3
    assert end(seen).exit_code == 5
    assert sorted(o.at for o in seen) == [o.at for o in seen]


async def until_it_spoke(engine: DockerEngine, run_id: RunId) -> None:
    """Wait for some words."""
    async for seen in engine.observe(run_id):
        if isinstance(seen, OutputChunk):
            return


def processes_of(home: Path, name: str) -> list[int]:
    """Our processes of this name that have to do with a home."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == name:
                links = [str(link.readlink()) for link in (entry / "fd").iterdir()]
                words = (entry / "cmdline").read_text()
                if any(str(home) in text for text in (*links, words)):
                    found.append(int(entry.name))
    return found


async def test_who_watches_may_be_killed(image: str, tmp_path: Path) -> None:
    """As a service that dies: the next one sees everything, from the first byte."""
    run_id = a_new_run()
    words = [str(tmp_path / "docker"), ADDRESS, run_id, plans.to_json(talker(image))]
    service = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVICE, *words, stdout=asyncio.subprocess.PIPE
    )
    assert service.stdout is not None
    while b"OutputChunk" not in (line := await service.stdout.readline()):
        assert line, "it ended by itself"
    service.kill()
    await service.communicate()
    await asyncio.sleep(1)
    async with opened(tmp_path) as engine:
        seen = await watch(engine, run_id)
        assert_whole(seen)
        assert await watch(engine, run_id) == seen
        await engine.remove(run_id)
    assert left(tmp_path) == ""


async def test_a_guard_that_is_killed_is_replaced(
    engine: DockerEngine, image: str, tmp_path: Path
) -> None:
    """And the next one goes on where it was."""
    run_id = a_new_run()
    await engine.start(run_id, talker(image))
    await until_it_spoke(engine, run_id)
    for process in processes_of(tmp_path, "anubis-guard"):
        os.kill(process, signal.SIGKILL)
    seen = await watch(engine, run_id)
    assert_whole(seen)
    assert await watch(engine, run_id) == seen


async def test_all_of_us_may_be_killed_at_once(
    engine: DockerEngine, image: str, tmp_path: Path
) -> None:
    """Guard, zygote and keeper: the container is the daemon's."""
    run_id = a_new_run()
    await engine.start(run_id, talker(image))
    await until_it_spoke(engine, run_id)
    for name in ("anubis-zygote", "anubis-keeper", "anubis-guard"):
        for process in processes_of(tmp_path, name):
            os.kill(process, signal.SIGKILL)
    assert_whole(await watch(engine, run_id))


async def test_a_run_is_stopped_though_its_guard_was_killed(
    engine: DockerEngine, image: str, tmp_path: Path
) -> None:
    run_id = a_new_run()
    await engine.start(run_id, a_plan("sh", "-c", "echo here; exec sleep 600", image=image))
    await until_it_spoke(engine, run_id)
    for process in processes_of(tmp_path, "anubis-guard"):
        os.kill(process, signal.SIGKILL)
    await engine.stop(run_id, grace=timedelta(seconds=5), cause=EndCause.CANCELED)
    ended = end(await watch(engine, run_id))
    assert (ended.cause, ended.signal) == (EndCause.CANCELED, 15)


async def test_a_machine_that_restarts_ends_the_run_truthfully(image: str, tmp_path: Path) -> None:
    """Its memory is empty then, but the daemon still knows what the container said."""
    run_id = a_new_run()
    async with opened(tmp_path) as engine:
        await engine.start(run_id, a_plan("sh", "-c", "echo here; exec sleep 600", image=image))
        await until_it_spoke(engine, run_id)
        for name in ("anubis-zygote", "anubis-keeper", "anubis-guard"):
            for process in processes_of(tmp_path, name):
                os.kill(process, signal.SIGKILL)
        directory = tmp_path / "docker" / run_id
        live = Path(files.live(str(directory)))
        for path in live.iterdir():
            path.unlink()
        live.rmdir()
        label = f"--filter=label=anubis.run={run_id}"
        docker_images.docker("kill", *docker_images.docker("ps", "-q", label).stdout.split())
        async with DockerEngine(tmp_path / "docker", ADDRESS, pull="never", revive=None) as later:
            seen = await watch(later, run_id)
        assert output(seen) == b"here\n"
        assert (end(seen).cause, end(seen).signal) == (EndCause.EXITED, 9)
