"""What a process engine's start costs: our zygote and shim against plainer ways to run a program.

All run ``/bin/true`` and take turns. Only "ours" and the Python shim leave a durable exit status
and survive the death of who started them; the others show what there is to pay for that. CPU
counts every process involved.
"""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.adapters.engine.process.guardian import tree
from anubis.domain.plan import Limits, Plan, Unit
from anubis.domain.run import RunId

ROUNDS = 60
RATE_RUNS = 300
CONCURRENCY = 8
TRUE = "/bin/true"

SHIM = """
import os, sys
os.setsid()
os.chdir(sys.argv[1])
files = [os.open(name, os.O_CREAT | os.O_WRONLY) for name in ("stdout", "stderr")]
child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ,
    file_actions=[(os.POSIX_SPAWN_DUP2, f, n + 1) for n, f in enumerate(files)])
status = os.waitpid(child, 0)[1]
exit_file = os.open("exit.tmp", os.O_CREAT | os.O_WRONLY)
os.write(exit_file, str(status).encode())
for file in (*files, exit_file):
    os.fsync(file)
os.rename("exit.tmp", "exit")
os.fsync(os.open(".", os.O_RDONLY))
"""
"""The simplest thing with a durable exit: one interpreter per run, which is our fallback's cost."""

Launcher = Callable[[], Awaitable[None]]


def _spawn() -> None:
    os.waitpid(os.posix_spawn(TRUE, [TRUE], os.environ), 0)


def _popen(folder: Path) -> None:
    place = Path(tempfile.mkdtemp(dir=folder))
    with (place / "stdout").open("wb") as out, (place / "stderr").open("wb") as err:
        subprocess.run([TRUE], stdout=out, stderr=err, start_new_session=True, check=True)


def _shim(folder: Path) -> None:
    place = tempfile.mkdtemp(dir=folder)
    subprocess.run([sys.executable, "-I", "-S", "-c", SHIM, place, TRUE], check=True)


async def _ours(engine: ProcessEngine) -> None:
    run_id = RunId(str(uuid.uuid4()))
    unit = Unit(name="benchmark", command=(TRUE,), environment={})
    await engine.start(run_id, Plan(units=(unit,), deciding=unit.name, limits=Limits()))
    async for _ in engine.observe(run_id):
        pass


def _launchers(engine: ProcessEngine, folder: Path) -> dict[str, Launcher]:
    async def spawn() -> None:
        await asyncio.to_thread(_spawn)

    async def popen() -> None:
        await asyncio.to_thread(_popen, folder)

    async def shim() -> None:
        await asyncio.to_thread(_shim, folder)

    async def ours() -> None:
        await _ours(engine)

    return {
        "posix_spawn (floor)": spawn,
        "Popen, files, setsid": popen,
        "python -I -S shim": shim,
        "ours: zygote and shim": ours,
    }


def _cpu() -> float:
    """Seconds of CPU of this process, of its ended children, and of the zygote with its shims."""
    ours = sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    ticks = 0
    for child in tree.children(os.getpid()):
        fields = tree.stat(child) or ()
        ticks += sum(int(value) for value in fields[tree.USER : tree.CHILDREN_SYSTEM + 1])
    return ours + ticks / os.sysconf("SC_CLK_TCK")


async def _latencies(launchers: dict[str, Launcher]) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in launchers}
    for _ in range(ROUNDS):
        for name, launch in launchers.items():
            began = time.perf_counter()
            await launch()
            seconds[name].append(time.perf_counter() - began)
    return seconds


async def _rate(launch: Launcher) -> tuple[float, float]:
    """Runs per second with several at a time, and CPU seconds per run."""
    runs = iter(range(RATE_RUNS))

    async def work() -> None:
        for _ in runs:
            await launch()

    cpu, began = _cpu(), time.perf_counter()
    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    return RATE_RUNS / (time.perf_counter() - began), (_cpu() - cpu) / RATE_RUNS


async def _measure(folder: Path) -> None:
    async with ProcessEngine(folder / "runs", revive=None) as engine:
        launchers = _launchers(engine, folder)
        for launch in launchers.values():
            await launch()
        seconds = await _latencies(launchers)
        rates = {name: await _rate(launch) for name, launch in launchers.items()}
    medians = {name: statistics.median(values) * 1e3 for name, values in seconds.items()}
    floor = next(iter(medians.values()))
    print(f"{'':<24}{'median ms':>10}{'x floor':>9}{'runs/s':>9}{'CPU ms/run':>12}")
    for name, median in medians.items():
        rate, cpu = rates[name]
        print(f"{name:<24}{median:>10.2f}{median / floor:>9.1f}{rate:>9.0f}{cpu * 1e3:>12.2f}")
    shim, ours = medians["python -I -S shim"], medians["ours: zygote and shim"]
    print(f"\nagainst a Python shim per run: {shim / ours:.1f}x less latency")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="anubis-bench-") as folder:
        asyncio.run(_measure(Path(folder)))


if __name__ == "__main__":
    main()
