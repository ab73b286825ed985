"""What a run costs beyond its program: no-op runs against a bare child process and MLflow.

All take turns in each round, so that a slow minute of the machine hits all alike. "Stored" ends
when the run's terminal state is durable, "seen" when a watcher has it. The command lines include
the start of an interpreter; the other rows do not. MLflow runs a project of the same program with
``--env-manager local``, which is its cheapest way, into a tracking store on the same disk: once as
a command, once from a process that has everything imported.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from anubis.bootstrap.application import Application
from anubis.domain.run import RunState
from bench import installation, peers

ROUNDS = 60
SLOW_ROUNDS = 5
"""Rounds in which the slow ones take part: they need seconds."""

GOAL_MS = 20
GOAL_RATIO = 30

PROJECT = "name: nothing\nentry_points:\n  main:\n    command: 'true'\n"

Timings = dict[str, list[float]]

BARE = "bare subprocess.run"
STORED, SEEN = "Anubis, submit to stored", "Anubis, submit to seen"
COMMAND = "anubis run"
MLFLOW, MLFLOW_CALL = "mlflow run", "mlflow.projects.run()"

CALLER = """\
import sys, time
import mlflow
for line in sys.stdin:
    began = time.perf_counter()
    mlflow.projects.run(".", env_manager="local")
    print(time.perf_counter() - began, flush=True)
"""
"""Runs one project per line of input, and answers with the seconds it took."""


def _bare() -> float:
    began = time.perf_counter()
    subprocess.run(["true"], check=True)
    return time.perf_counter() - began


async def _ours(application: Application) -> tuple[float, float]:
    """Seconds until the end was stored, and until it was seen."""
    began, clock = time.perf_counter(), time.time()
    run = await installation.run_to_end(application, installation.NOTHING)
    assert run.state is RunState.SUCCEEDED, run.outcome
    assert run.ended_at is not None, "a run that succeeded has ended"
    return run.ended_at.timestamp() - clock, time.perf_counter() - began


def _command(arguments: list[str], environment: Mapping[str, str], folder: Path) -> float:
    began = time.perf_counter()
    result = subprocess.run(
        arguments,
        env={**os.environ, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - began
    if result.returncode:
        raise RuntimeError(f"{arguments[0]} failed:\n{result.stdout}{result.stderr}")
    return seconds


def _contestants(
    home: Path, folder: Path, stack: contextlib.ExitStack
) -> Mapping[str, Callable[[], float]]:
    """The slow ones, as functions that take their time; without MLflow if it cannot be had."""
    (folder / "nothing.toml").write_bytes(installation.NOTHING.content)
    anubis = [sys.executable, "-m", "anubis", "run", "nothing.toml"]
    found: dict[str, Callable[[], float]] = {}
    found[COMMAND] = lambda: _command(anubis, {"ANUBIS_HOME": str(home)}, folder)
    if mlflow := peers.program("mlflow"):
        (folder / "MLproject").write_text(PROJECT)
        words = [str(mlflow), "run", "--env-manager", "local", "."]
        store = {
            "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.sqlite",
            "PATH": f"{mlflow.parent}:{os.environ['PATH']}",
        }
        found[MLFLOW] = lambda: _command(words, store, folder)
        found[MLFLOW_CALL] = _caller(mlflow.with_name("python"), store, folder, stack)
    for call in found.values():
        call()  # the first one compiles modules and creates stores
    return found


def _caller(
    python: Path, environment: Mapping[str, str], folder: Path, stack: contextlib.ExitStack
) -> Callable[[], float]:
    """MLflow in a process of its own that stays."""
    process = stack.enter_context(
        subprocess.Popen(
            [str(python), "-c", CALLER],
            env={**os.environ, **environment},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    )

    def call() -> float:
        assert process.stdin is not None, "it was opened with a pipe"
        assert process.stdout is not None, "it was opened with a pipe"
        process.stdin.write("go\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    return call


async def _rounds(
    application: Application,
    contestants: Mapping[str, Callable[[], float]],
    seconds: Timings,
) -> None:
    for number in range(ROUNDS):
        seconds.setdefault(BARE, []).append(_bare())
        stored, seen = await _ours(application)
        seconds.setdefault(STORED, []).append(stored)
        seconds.setdefault(SEEN, []).append(seen)
        if number % (ROUNDS // SLOW_ROUNDS) == 0:
            for name, call in contestants.items():
                seconds.setdefault(name, []).append(await asyncio.to_thread(call))


def _report(seconds: Timings) -> None:
    medians = {name: statistics.median(values) * 1e3 for name, values in seconds.items()}
    bare = medians[BARE]
    print(f"{'':<28}{'median ms':>10}{'best':>8}{'over bare':>11}{'x bare':>9}{'rounds':>8}")
    for name, median in medians.items():
        best, count = min(seconds[name]) * 1e3, len(seconds[name])
        shown = f"{median:>10.1f}{best:>8.1f}{median - bare:>11.1f}{median / bare:>9.1f}{count:>8}"
        print(f"{name:<28}{shown}")
    over = medians[STORED] - bare
    print(f"\ngoal of at most {GOAL_MS} ms over bare: {_verdict(over <= GOAL_MS)} ({over:.1f} ms)")
    if MLFLOW in medians:
        ratio = (medians[MLFLOW] - bare) / over
        line = f"goal of {GOAL_RATIO}x less overhead than {MLFLOW}"
        print(f"{line}: {_verdict(ratio >= GOAL_RATIO)} ({ratio:.0f}x)")
        ratio = medians[MLFLOW] / medians[COMMAND]
        print(f"command line against command line: {ratio:.1f}x less than {MLFLOW}")


def _verdict(is_reached: bool) -> str:
    return "reached" if is_reached else "MISSED"


async def _measure() -> None:
    seconds: Timings = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="anubis-bench-")))
        async with installation.installation(slots=1) as application:
            home = application.settings.home
            contestants = await asyncio.to_thread(_contestants, home, folder, stack)
            await _rounds(application, contestants, seconds)
    _report(seconds)


def main() -> None:
    asyncio.run(_measure())


if __name__ == "__main__":
    main()
