"""Our processes are killed while a run goes on: its output is complete and its end is told."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.adapters.engine.process.guardian import files, tree
from anubis.domain.observation import EndCause, OutputChunk, Stream, UnitStarted
from anubis.domain.run import RunId
from anubis.testing.contracts.engine import (
    a_new_run,
    a_plan,
    end,
    output,
    run,
    until_it_speaks,
    watch,
)

SurvivorsOf = Callable[[RunId], list[int]]

COUNTING = "echo $PPID; for i in $(seq 40); do echo line $i; sleep 0.02; done; exit 4"
"""Tells its shim's process id, then writes for a second."""

DAEMONS = "echo $PPID; (setsid sleep 600 &) ; (setsid env -i sleep 600 &) ; exec sleep 600"


NOTING = """
import os, sys
noted = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(1, b"%d\\n" % os.getppid())
for i in range(10**9):
    os.write(1, b"%099d\\n" % i)
    os.pwrite(noted, b"%d" % (i + 1), 0)
"""


async def first_word(engine: ProcessEngine, run_id: RunId) -> int:
    """The shim's process id, which these programs say first."""
    async with asyncio.timeout(30):
        async for observation in engine.observe(run_id):
            if isinstance(observation, OutputChunk):
                return int(observation.data.split()[0])
    raise AssertionError("the run ended without a word")


def parent(process: int) -> int:
    fields = tree.stat(process)
    assert fields is not None
    return int(fields[tree.PARENT])


def keeper_of(zygote: int) -> int:
    names = {child: Path(f"/proc/{child}/comm").read_text() for child in tree.children(zygote)}
    [keeper] = [child for child, name in names.items() if name == "anubis-keeper\n"]
    return keeper


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.01)


async def vanished(processes: list[int]) -> bool:
    await until(lambda: not any(tree.is_running(process) for process in processes))
    return True


async def started(engine: ProcessEngine, text: str) -> tuple[RunId, int]:
    run_id = a_new_run()
    await engine.start(run_id, a_plan("sh", "-c", text))
    return run_id, await first_word(engine, run_id)


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.11, 0.23])
async def test_a_killed_shim_loses_the_exit_but_no_output(
    engine: ProcessEngine, survivors_of: SurvivorsOf, tmp_path: Path, delay: float
) -> None:
    """The program notes in a file how much it has written; at least that much must be there."""
    run_id = a_new_run()
    plan = a_plan(sys.executable, "-I", "-S", "-c", NOTING, str(tmp_path / "noted"))
    await engine.start(run_id, plan)
    shim = await first_word(engine, run_id)
    await asyncio.sleep(delay)
    os.kill(shim, signal.SIGKILL)
    seen = await watch(engine, run_id)
    assert end(seen).cause is EndCause.LOST
    assert "the shim was killed by signal 9" in end(seen).message
    lines = output(seen).split()[1:]
    assert lines[:-1] == [b"%099d" % i for i in range(len(lines) - 1)]
    assert len(lines) >= int((tmp_path / "noted").read_bytes())
    assert survivors_of(run_id) == []


async def test_what_a_killed_shim_left_in_the_pipe_is_saved(engine: ProcessEngine) -> None:
    """The shim is stopped first, so that it cannot have read what is written afterwards."""
    text = "echo $PPID; kill -STOP $PPID; seq 1000; echo error >&2; kill -KILL $PPID; sleep 600"
    seen = await run(engine, a_plan("sh", "-c", text))
    lines = output(seen).split()[1:]
    assert lines == [b"%d" % i for i in range(1, 1001)]
    assert output(seen, Stream.STDERR) == b"error\n"
    assert end(seen).cause is EndCause.LOST


async def test_a_killed_shim_leaves_no_process_not_even_one_without_environment(
    engine: ProcessEngine, survivors_of: SurvivorsOf
) -> None:
    run_id, shim = await started(engine, DAEMONS)
    await asyncio.sleep(0.1)
    below = tree.running_below(shim)
    assert len(below) == 3
    os.kill(shim, signal.SIGKILL)
    assert end(await watch(engine, run_id)).cause is EndCause.LOST
    assert await vanished(below)


async def test_a_killed_zygote_is_nothing_to_a_run(engine: ProcessEngine) -> None:
    run_id, shim = await started(engine, COUNTING)
    os.kill(parent(shim), signal.SIGKILL)
    seen = await watch(engine, run_id)
    assert (end(seen).cause, end(seen).exit_code) == (EndCause.EXITED, 4)
    assert output(seen).count(b"line") == 40


async def test_a_new_zygote_is_started_for_the_next_run(engine: ProcessEngine) -> None:
    run_id, shim = await started(engine, COUNTING)
    zygote = parent(shim)
    os.kill(zygote, signal.SIGKILL)
    assert await vanished([zygote])
    other = await run(engine, a_plan("sh", "-c", "exit 5"))
    assert end(other).exit_code == 5
    assert end(await watch(engine, run_id)).exit_code == 4


async def test_shim_and_zygote_killed_together_still_lose_no_output(
    engine: ProcessEngine, survivors_of: SurvivorsOf
) -> None:
    text = (
        "read -r a b c zygote rest </proc/$PPID/stat; kill -STOP $PPID; seq 1000;"
        "kill -KILL $zygote $PPID; sleep 600"
    )
    run_id = a_new_run()
    await engine.start(run_id, a_plan("sh", "-c", text))
    seen = await watch(engine, run_id)
    assert output(seen).split() == [b"%d" % i for i in range(1, 1001)]
    assert end(seen).cause is EndCause.LOST
    assert survivors_of(run_id) == []
    assert end(await run(engine, a_plan("true"))).exit_code == 0


async def test_with_service_zygote_and_shim_killed_together_no_output_is_lost(
    engine: ProcessEngine, directory: Path, tmp_path: Path, survivors_of: SurvivorsOf
) -> None:
    """The keeper still holds the pipes, and finishes the run."""
    run_id = a_new_run()
    text = (
        f"cd {tmp_path}; echo $PPID >shim.tmp; mv shim.tmp shim; until [ -e go ]; do sleep 0.02;"
        "done; kill -STOP $PPID; seq 1000; kill -KILL $PPID; sleep 600"
    )
    await a_service(directory, run_id, text)
    await until((tmp_path / "shim").exists)
    shim = int((tmp_path / "shim").read_text())
    os.kill(parent(shim), signal.SIGKILL)
    await kill_service()
    (tmp_path / "go").touch()
    await until((directory / run_id / "status.json").exists)
    seen = await watch(engine, run_id)
    assert output(seen).split() == [b"%d" % i for i in range(1, 1001)]
    assert (end(seen).cause, end(seen).message) == (
        EndCause.LOST,
        "the shim was killed after its zygote",
    )
    assert survivors_of(run_id) == []


async def test_a_second_request_for_a_shim_leaves_the_first_guarded(engine: ProcessEngine) -> None:
    run_id, shim = await started(engine, COUNTING)
    await engine._link.start(run_id)
    await run(engine, a_plan("true"))
    assert engine._link.serves(run_id)
    assert len(tree.children(parent(shim))) == 2  # this shim and the keeper
    assert end(await watch(engine, run_id)).exit_code == 4


async def test_a_killed_keeper_is_replaced(engine: ProcessEngine) -> None:
    run_id, shim = await started(engine, COUNTING)
    zygote = parent(shim)
    first = keeper_of(zygote)
    os.kill(first, signal.SIGKILL)
    await until(lambda: not tree.is_running(first))
    await run(engine, a_plan("true"))
    assert keeper_of(zygote) != first
    pipes = {str(path.readlink()) for path in Path(f"/proc/{keeper_of(zygote)}/fd").iterdir()}
    assert any(run_id in pipe for pipe in pipes)
    assert end(await watch(engine, run_id)).exit_code == 4


async def test_a_lost_run_is_not_run_again(engine: ProcessEngine, tmp_path: Path) -> None:
    run_id, shim = await started(engine, f"echo $PPID; echo once >> {tmp_path}/count; sleep 600")
    os.kill(shim, signal.SIGKILL)
    await watch(engine, run_id)
    await engine.start(run_id, a_plan("sh", "-c", f"echo twice >> {tmp_path}/count"))
    assert end(await watch(engine, run_id)).cause is EndCause.LOST
    assert (tmp_path / "count").read_text() == "once\n"


SERVICE = """
import asyncio, sys
from pathlib import Path
from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.domain.run import RunId
from anubis.testing.contracts.engine import a_plan

async def main():
    engine = ProcessEngine(Path(sys.argv[1]), revive=tuple(sys.argv[4:]) or None)
    await engine.start(RunId(sys.argv[2]), a_plan("sh", "-c", sys.argv[3]))
    print("started", flush=True)
    async for observation in engine.observe(RunId(sys.argv[2])):
        pass
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def a_service(directory: Path, run_id: RunId, text: str, *revive: str) -> int:
    """Another process with an engine that starts and follows a run; its process id."""
    service = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVICE, str(directory), run_id, text, *revive,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert service.stdout is not None
    assert await service.stdout.readline() == b"started\n"
    SERVICES.append(service)
    return service.pid


SERVICES: list[asyncio.subprocess.Process] = []


async def kill_service() -> None:
    service = SERVICES.pop()
    service.kill()
    await service.wait()
    service._transport.close()  # type: ignore[attr-defined] # else a warning about the pipe


@pytest.mark.parametrize("also", ["nobody", "the zygote"])
async def test_a_run_outlives_the_service_and_is_found_again(
    engine: ProcessEngine, directory: Path, also: str
) -> None:
    run_id = a_new_run()
    await a_service(directory, run_id, COUNTING)
    shim = await first_word(engine, run_id)
    zygote = parent(shim)
    await kill_service()
    if also == "the zygote":
        os.kill(zygote, signal.SIGKILL)
    seen = await watch(engine, run_id)
    assert isinstance(seen[0], UnitStarted)
    assert output(seen).count(b"line") == 40
    assert (end(seen).cause, end(seen).exit_code) == (EndCause.EXITED, 4)
    assert await vanished([zygote])


async def test_when_all_are_killed_the_next_engine_finishes_the_run(
    engine: ProcessEngine, directory: Path, survivors_of: SurvivorsOf
) -> None:
    run_id = a_new_run()
    await a_service(directory, run_id, DAEMONS)
    shim = await first_word(engine, run_id)
    zygote = parent(shim)
    await kill_service()
    os.kill(zygote, signal.SIGSTOP)  # else it may have another keeper before it is killed itself
    for process in (keeper_of(zygote), zygote, shim):
        os.kill(process, signal.SIGKILL)
    seen = await watch(engine, run_id)
    assert end(seen).cause is EndCause.LOST
    assert "shim is gone" in end(seen).message
    assert survivors_of(run_id) == []


async def test_a_run_of_a_dead_service_can_be_stopped_by_the_next(
    engine: ProcessEngine, directory: Path
) -> None:
    run_id = a_new_run()
    await a_service(directory, run_id, "echo $PPID; exec sleep 600")
    await until_it_speaks(engine, run_id)
    await kill_service()
    await engine.stop(run_id, grace=timedelta(seconds=5), cause=EndCause.CANCELED)
    assert end(await watch(engine, run_id)).cause is EndCause.CANCELED


@pytest.mark.parametrize("also", ["nobody", "the zygote"])
async def test_the_runtime_is_started_again_when_the_service_dies(
    engine: ProcessEngine, directory: Path, tmp_path: Path, also: str
) -> None:
    """By the zygote at once; by the shim at its end when the zygote is gone too."""
    sign = tmp_path / "revived"
    run_id = a_new_run()
    await a_service(directory, run_id, COUNTING, "sh", "-c", f"echo x >> {sign}")
    shim = await first_word(engine, run_id)
    if also == "the zygote":
        os.kill(parent(shim), signal.SIGKILL)
    await kill_service()
    await watch(engine, run_id)
    await until(lambda: sign.exists() and bool(sign.read_text()))
    assert sign.read_text() == "x\n"


async def test_a_run_specified_but_never_started_is_lost_soon(
    engine: ProcessEngine, directory: Path
) -> None:
    """The service died between writing the specification and asking for a shim."""
    run_id = a_new_run()
    await engine.start(run_id, a_plan("true"))
    await watch(engine, run_id)
    for name in ("journal", "status.json"):
        (directory / run_id / name).unlink()
    ended = end(await watch(engine, run_id))
    assert (ended.cause, ended.message) == (EndCause.LOST, "nobody started the run")


async def test_a_run_that_a_restart_of_the_machine_ended_is_lost_with_its_output(
    engine: ProcessEngine, directory: Path
) -> None:
    """Nothing is left but what is on the disk."""
    run_id = a_new_run()
    await engine.start(run_id, a_plan("echo", "before the restart"))
    await watch(engine, run_id)
    (directory / run_id / "status.json").unlink()
    shutil.rmtree(files.live(str(directory / run_id)))
    seen = await watch(engine, run_id)
    assert output(seen) == b"before the restart\n"
    assert end(seen).cause is EndCause.LOST
    assert "the machine was restarted" in end(seen).message


async def test_a_closed_engine_leaves_its_runs_running(directory: Path) -> None:
    run_id = a_new_run()
    async with ProcessEngine(directory, revive=None) as engine:
        await engine.start(run_id, a_plan("sh", "-c", COUNTING))
        shim = await first_word(engine, run_id)
        zygote = parent(shim)
    assert tree.is_running(shim)
    async with ProcessEngine(directory, revive=None) as engine:
        assert end(await watch(engine, run_id)).exit_code == 4
    assert await vanished([zygote])
