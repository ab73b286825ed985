"""How much being measured slows a program: the same CPU-bound work, bare and under our engine.

A/A: both sides run the same program and take turns, in an order that changes, and the program
itself measures its work, so that only what happens beside it can differ. The third row is bare
once more: what the machine's noise alone looks like in this run. One variant writes a line every
millisecond, the other is silent.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.domain.observation import OutputChunk
from anubis.domain.plan import Limits, Plan, Unit
from anubis.domain.run import RunId

ROUNDS = 12
GOAL = 0.005

WORK = """
import sys, time
def work(amount):
    total = 0
    for i in range(amount):
        total += i * i % 7
    return total
work(100_000)
began = time.perf_counter()
for step in range(int(sys.argv[1])):
    work(8_000)
    if sys.argv[2] == "chatty":
        sys.stdout.write(f"step {step} loss 0.123\\n")
        sys.stdout.flush()
sys.stderr.write(f"{time.perf_counter() - began}\\n")
"""

STEPS = 2500
"""About a second on a common machine: long enough for a resource reading to fall into it."""


def _command(kind: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", WORK, str(STEPS), kind)


def _bare(kind: str) -> float:
    """The output goes to a pipe that somebody reads, as it does in a shell pipeline."""
    result = subprocess.run(_command(kind), capture_output=True, check=True)
    return float(result.stderr)


async def _ours(engine: ProcessEngine, kind: str) -> float:
    unit = Unit(name="benchmark", command=_command(kind), environment={})
    run_id = RunId(str(uuid.uuid4()))
    await engine.start(run_id, Plan(units=(unit,), deciding=unit.name, limits=Limits()))
    said = [o async for o in engine.observe(run_id) if isinstance(o, OutputChunk)]
    return float(b"".join(chunk.data for chunk in said if chunk.stream == "stderr"))


async def _rounds(engine: ProcessEngine, kind: str) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {"bare": [], "under Anubis": [], "bare again": []}
    names = list(seconds)
    for _ in range(ROUNDS):
        random.shuffle(names)
        for name in names:
            if name == "under Anubis":
                seconds[name].append(await _ours(engine, kind))
            else:
                seconds[name].append(await asyncio.to_thread(_bare, kind))
    return seconds


def _report(kind: str, seconds: dict[str, list[float]]) -> None:
    bare = seconds["bare"]
    print(f"{kind:<16}{'median s':>10}{'fastest s':>11}{'median of ratios to bare':>26}")
    for name, values in seconds.items():
        ratio = statistics.median(v / b for v, b in zip(values, bare, strict=True))
        print(f"  {name:<14}{statistics.median(values):>10.3f}{min(values):>11.3f}{ratio:>26.4f}")
    ratio = min(seconds["under Anubis"]) / min(bare)
    verdict = "reached" if ratio - 1 < GOAL else "MISSED"
    noise = abs(min(seconds["bare again"]) / min(bare) - 1)
    print(f"  goal of less than {GOAL:.1%}: {verdict}", end=" ")
    print(f"({ratio - 1:+.2%} by the fastest of {ROUNDS}; noise of the machine {noise:.2%})\n")


async def _measure(folder: Path) -> None:
    async with ProcessEngine(folder / "runs", revive=None) as engine:
        for kind in ("silent", "chatty"):
            await _ours(engine, kind)
            _report(kind, await _rounds(engine, kind))


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="anubis-bench-") as folder:
        asyncio.run(_measure(Path(folder)))


if __name__ == "__main__":
    main()
