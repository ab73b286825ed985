"""How many runs per second, durable, on two cores, and how long submitting takes.

500 runs of ``true`` are submitted from one process to a runtime with 16 slots; the time counts
from the first submission to the last stored end. The bound is what no durable system can pass: the
same programs, 16 at a time, as bare child processes of one asyncio program, nothing stored. The
two take turns, a hundred programs each, so that a slow minute of the machine hits both alike.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time

import psutil

from anubis.bootstrap.application import Application
from anubis.domain.run import RunState
from anubis.settings.model import Settings
from bench import installation

BATCH = 400
"""Long enough that filling the slots at its start and emptying them at its end count for little:
the goal is a rate that can be kept up."""

BATCHES = 3
SLOTS = 16
SUBMITTERS = 16
CORES = 2
GOAL = 200
"""Runs per second: DESIGN's goal for an embedded, durable installation."""


async def _bare() -> float:
    """Seconds for one batch without Anubis."""
    room = asyncio.Semaphore(SLOTS)

    async def one() -> None:
        async with room:
            process = await asyncio.create_subprocess_exec("true")
            await process.wait()

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(BATCH)))
    return time.perf_counter() - began


async def _ours(application: Application) -> tuple[float, list[float]]:
    """Seconds until a batch has ended, and seconds that each submission took."""
    before = (await application.store.counts()).get(RunState.SUCCEEDED, 0)
    room = asyncio.Semaphore(SUBMITTERS)
    submissions: list[float] = []

    async def one() -> None:
        async with room:
            began = time.perf_counter()
            await installation.submit(application, installation.NOTHING)
            submissions.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(BATCH)))
    while (await application.store.counts()).get(RunState.SUCCEEDED, 0) < before + BATCH:
        if time.perf_counter() - began > 120:
            raise TimeoutError(f"only {await application.store.counts()} after two minutes")
        await asyncio.sleep(0.02)
    return time.perf_counter() - began, submissions


def _cpu_seconds(settings: Settings) -> tuple[float, float]:
    """CPU time so far of the runtime, and of its zygote with all shims and programs that ended."""
    runtime = psutil.Process(int(settings.runtime_pid.read_text()))
    [zygote] = [child for child in runtime.children() if child.name() == "anubis-zygote"]
    own, guards = runtime.cpu_times(), zygote.cpu_times()
    return own.user + own.system, sum(guards[:4])


async def _measure() -> None:
    seconds, bare = 0.0, 0.0
    submissions: list[float] = []
    async with installation.installation(slots=SLOTS) as application:
        before, client = _cpu_seconds(application.settings), time.process_time()
        for _ in range(BATCHES):
            bare += await _bare()
            took, submitted = await _ours(application)
            seconds += took
            submissions += submitted
        after, client = _cpu_seconds(application.settings), time.process_time() - client
    cuts = statistics.quantiles(submissions, n=100)
    runs = BATCH * BATCHES
    print(f"{runs} runs of 'true', {SLOTS} at once, on {CORES} cores\n")
    print(f"{'':<38}{'runs/s':>8}{'ratio':>8}")
    print(f"{'bare asyncio subprocess (bound)':<38}{runs / bare:>8.0f}{1:>8.2f}")
    print(f"{'Anubis, durable':<38}{runs / seconds:>8.0f}{bare / seconds:>8.2f}")
    print(
        f"\nsubmit, {SUBMITTERS} at once: p50 {cuts[49] * 1e3:.1f} ms, p99 {cuts[98] * 1e3:.1f} ms"
    )
    runtime, guards = (
        (late - early) / runs * 1e3 for early, late in zip(before, after, strict=True)
    )
    print(
        f"CPU per run: submitter {client / runs * 1e3:.1f} ms (bare programs included), "
        f"runtime {runtime:.1f} ms, zygote, shims and programs {guards:.1f} ms"
    )
    verdict = "reached" if runs / seconds >= GOAL else "MISSED"
    print(f"goal of {GOAL} runs/s: {verdict}")


def main() -> None:
    # The runtime and its shims inherit this: figures of large machines compare with small ones.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    asyncio.run(_measure())


if __name__ == "__main__":
    main()
