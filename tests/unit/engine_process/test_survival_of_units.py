"""Our processes are killed while a run of several units goes on: each unit fares for itself."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.adapters.engine.process.guardian import recovery, tree
from anubis.domain.observation import EndCause, OutputChunk
from anubis.domain.plan import Limits, Plan, Unit, to_json
from anubis.domain.run import RunId
from anubis.testing.contracts.engine import a_new_run, end, output, watch

SurvivorsOf = Callable[[RunId], list[int]]

NAMES = ("server", "worker-1", "benchmark")
WAITING = "echo $PPID; until [ -e {sign} ]; do sleep 0.02; done; echo done; exit 4"
DAEMONS = "echo $PPID; (setsid sleep 600 &) ; (setsid env -i sleep 600 &) ; exec sleep 600"


def an_ensemble(sign: Path) -> Plan:
    """A server that leaves daemons, and two that wait for a sign."""
    waiting = WAITING.format(sign=sign)
    texts = {"server": DAEMONS, "worker-1": waiting, "benchmark": waiting}
    units = tuple(
        Unit(name=name, command=("sh", "-c", text), environment={}) for name, text in texts.items()
    )
    return Plan(units=units, deciding="benchmark", limits=Limits())


async def shims_of(engine: ProcessEngine, run_id: RunId) -> dict[str, int]:
    """The shims' process ids, which these programs say first."""
    found: dict[str, int] = {}
    for name in NAMES:
        async with asyncio.timeout(30):
            async for observation in engine.observe(run_id, name):
                if isinstance(observation, OutputChunk):
                    found[name] = int(observation.data.split()[0])
                    break
    return found


async def test_a_killed_shim_costs_its_own_unit_and_no_other(
    engine: ProcessEngine, tmp_path: Path, survivors_of: SurvivorsOf
) -> None:
    run_id, plan = a_new_run(), an_ensemble(tmp_path / "sign")
    for name in NAMES:
        await engine.start(run_id, plan, name)
    shims = await shims_of(engine, run_id)
    os.kill(shims["server"], signal.SIGKILL)
    server = end(await watch(engine, run_id, "server"))
    assert (server.cause, server.unit) == (EndCause.LOST, "server")
    assert list(recovery.marked(run_id, None, "server")) == []
    assert all(tree.is_running(shims[name]) for name in NAMES[1:])
    (tmp_path / "sign").touch()
    for name in NAMES[1:]:
        seen = await watch(engine, run_id, name)
        assert output(seen).split()[1:] == [b"done"]
        assert end(seen).exit_code == 4
    assert survivors_of(run_id) == []


SERVICE = """
import asyncio, sys
from pathlib import Path
from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.domain import plan
from anubis.domain.run import RunId

async def main():
    engine = ProcessEngine(Path(sys.argv[1]), revive=None)
    ensemble = plan.from_json(sys.argv[3])
    for unit in ensemble.units:
        await engine.start(RunId(sys.argv[2]), ensemble, unit.name)
    print("started", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@asynccontextmanager
async def a_service(directory: Path, run_id: RunId, plan: Plan) -> AsyncIterator[int]:
    """Another process that starts all units; it is killed at the end."""
    service = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVICE, str(directory), run_id, to_json(plan),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert service.stdout is not None
    try:
        assert await service.stdout.readline() == b"started\n"
        yield service.pid
    finally:
        service.kill()
        await service.wait()
        service._transport.close()  # type: ignore[attr-defined] # else a warning about the pipe


@pytest.mark.parametrize("also", ["nobody", "the zygote", "the zygote and a shim", "all"])
async def test_units_outlive_the_service_and_are_found_again(
    engine: ProcessEngine, directory: Path, tmp_path: Path, survivors_of: SurvivorsOf, also: str
) -> None:
    run_id, plan = a_new_run(), an_ensemble(tmp_path / "sign")
    async with a_service(directory, run_id, plan):
        shims = await shims_of(engine, run_id)
        zygote = int((tree.stat(shims["server"]) or [])[tree.PARENT])
    if also != "nobody":
        doomed = {"the zygote": [], "the zygote and a shim": [shims["server"]]}
        os.kill(zygote, signal.SIGSTOP)  # it would finish what it sees dying
        tree.send(signal.SIGKILL, [*doomed.get(also, tree.children(zygote)), zygote])
    assert await engine.started(run_id) == set(NAMES)
    if also in ("nobody", "the zygote"):
        only = {"server"}
        await engine.stop(run_id, grace=timedelta(seconds=20), cause=EndCause.DISMISSED, units=only)
    (tmp_path / "sign").touch()
    ends = {name: end(await watch(engine, run_id, name)) for name in NAMES}
    is_whole = also in ("nobody", "the zygote")
    assert ends["server"].cause is (EndCause.DISMISSED if is_whole else EndCause.LOST)
    for name in NAMES[1:]:
        assert ends[name].exit_code == (None if also == "all" else 4)
    assert survivors_of(run_id) == []
