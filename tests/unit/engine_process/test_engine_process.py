"""What is particular to the process engine: its directory, its limits, its zygote."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.adapters.engine.process.guardian import recovery, tree
from anubis.domain import errors
from anubis.domain.observation import EndCause, OutputChunk, ResourceReading
from anubis.domain.run import RunId
from anubis.testing.contracts.engine import a_new_run, a_plan, end, output, run, watch


async def test_resources_of_the_whole_tree_are_read_every_second(engine: ProcessEngine) -> None:
    burn = 'import time\nx = b"1" * 50_000_000\nwhile time.process_time() < 1.3: pass'
    plan = a_plan("sh", "-c", f"{sys.executable} -S -c '{burn}' & wait")
    readings = [o for o in await run(engine, plan) if isinstance(o, ResourceReading)]
    assert len(readings) >= 3
    assert max(reading.memory_bytes for reading in readings) > 50_000_000
    assert max(reading.processes for reading in readings) == 2
    assert readings[-1].cpu_seconds >= 1.3
    totals = [reading.cpu_seconds for reading in readings]
    assert totals == sorted(totals)


async def test_what_a_short_program_writes_to_the_disk_is_counted(
    engine: ProcessEngine, tmp_path: Path
) -> None:
    text = f"dd if=/dev/zero of={tmp_path}/file bs=1M count=3 conv=fsync 2>/dev/null; sleep 0.02"
    readings = [
        o for o in await run(engine, a_plan("sh", "-c", text)) if isinstance(o, ResourceReading)
    ]
    assert readings[-1].written_bytes >= 3 << 20


async def test_output_is_seen_while_the_program_runs(engine: ProcessEngine) -> None:
    run_id = a_new_run()
    await engine.start(run_id, a_plan("sh", "-c", "echo now; exec sleep 600"))
    async with asyncio.timeout(10):
        async for observation in engine.observe(run_id):
            if isinstance(observation, OutputChunk):
                break
    await engine.stop(run_id, grace=timedelta(seconds=5), cause=EndCause.CANCELED)


async def test_a_second_stop_can_shorten_the_patience(engine: ProcessEngine) -> None:
    run_id = a_new_run()
    await engine.start(run_id, a_plan("sh", "-c", "trap '' TERM; echo; while :; do sleep 9; done"))
    async for observation in engine.observe(run_id):
        if isinstance(observation, OutputChunk):
            break
    await engine.stop(run_id, grace=timedelta(hours=1), cause=EndCause.CANCELED)
    await engine.stop(run_id, grace=timedelta(), cause=EndCause.TIMED_OUT)
    ended = end(await watch(engine, run_id))
    assert (ended.cause, ended.signal) == (EndCause.CANCELED, signal.SIGKILL)


async def test_a_stopped_program_hears_sigterm(engine: ProcessEngine) -> None:
    """One that is suspended could not, and would be killed without a chance to tidy up."""
    run_id = a_new_run()
    text = "trap 'echo tidied; exit 3' TERM; echo ready; kill -STOP $$; sleep 9"
    await engine.start(run_id, a_plan("sh", "-c", text))
    async for observation in engine.observe(run_id):
        if isinstance(observation, OutputChunk):
            break
    await asyncio.sleep(0.1)
    await engine.stop(run_id, grace=timedelta(seconds=20), cause=EndCause.CANCELED)
    seen = await watch(engine, run_id)
    assert output(seen) == b"ready\ntidied\n"
    assert end(seen).exit_code == 3


async def test_many_runs_at_once_do_not_mix(engine: ProcessEngine) -> None:
    async def one(number: int) -> bytes:
        return output(await run(engine, a_plan("sh", "-c", f"echo {number}; echo {number}")))

    said = await asyncio.gather(*(one(number) for number in range(40)))
    assert said == [b"%d\n%d\n" % (number, number) for number in range(40)]


async def test_no_descriptor_is_left_open_by_ended_runs(engine: ProcessEngine) -> None:
    await run(engine, a_plan("true"))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        await run(engine, a_plan("echo", "x"))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("name", ["", "../other", ".hidden", "a\nb", "a.b"])
async def test_a_run_cannot_be_named_like_a_path(engine: ProcessEngine, name: str) -> None:
    with pytest.raises(errors.NotPossible):
        await engine.start(RunId(name), a_plan("true"))


async def test_an_empty_command_is_not_started(engine: ProcessEngine) -> None:
    assert end(await run(engine, a_plan())).cause is EndCause.NOT_STARTED


async def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with ProcessEngine(tmp_path / "file", revive=None) as engine:
        with pytest.raises(errors.EngineUnavailable):
            await engine.start(a_new_run(), a_plan("true"))


async def test_output_that_cannot_be_stored_ends_the_run_with_the_reason(
    engine: ProcessEngine,
) -> None:
    """Here a limit on the size of files plays the full disk."""
    others = set(tree.children(os.getpid()))  # servers of other tests
    await run(engine, a_plan("true"))
    [zygote] = filter(tree.is_running, set(tree.children(os.getpid())) - others)
    resource.prlimit(zygote, resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    run_id = a_new_run()
    await engine.start(run_id, a_plan("sh", "-c", "setsid sleep 600 & yes"))
    ended = end(await watch(engine, run_id))
    assert ended.cause is EndCause.LOST
    assert "File too large" in ended.message
    assert list(recovery.marked(run_id, None)) == []


async def test_a_run_whose_guards_all_died_can_be_removed_unseen(
    engine: ProcessEngine, directory: Path
) -> None:
    run_id = a_new_run()
    await engine.start(run_id, a_plan("sh", "-c", "echo $PPID; exec sleep 600"))
    async for observation in engine.observe(run_id):
        if isinstance(observation, OutputChunk):
            shim = int(observation.data)
            break
    zygote = int((tree.stat(shim) or [])[tree.PARENT])
    os.kill(zygote, signal.SIGSTOP)  # it would replace and finish what it sees dying
    tree.send(signal.SIGKILL, [*tree.children(zygote), zygote])
    while tree.is_running(shim):
        await asyncio.sleep(0.01)
    await engine.remove(run_id)
    assert list(recovery.marked(run_id, None)) == []
    assert not (directory / run_id).exists()
