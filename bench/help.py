"""How long people wait for an answer: ``anubis --help``, ``version``, ``status last`` and others.

The peer is ``python -c pass`` of the same interpreter, the least any Python program can take. All
take turns in each round, so that a slow minute of the machine hits all alike.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 15
GOALS = {"anubis --help": 2.0, "anubis version": 2.0}
BARE = "python -c pass"
PARTS = "import click, asyncio, sqlite3"
"""What a command that reads the store cannot do without."""

DESCRIPTOR = """\
spec_version = "0.1.0"

[info]
description = "nothing"
execution_engine = "process"

[info.labels]
task_name = "nothing"

[hardware]
strategy = "single_node"

[env]

[ml]
benchmark_code = "true"
"""


def _commands() -> dict[str, list[str]]:
    anubis = str(Path(sys.executable).with_name("anubis"))
    return {
        BARE: [sys.executable, "-c", "pass"],
        PARTS: [sys.executable, "-c", PARTS],
        "anubis --help": [anubis, "--help"],
        "anubis version": [anubis, "version"],
        "anubis run --help": [anubis, "run", "--help"],
        "anubis status last": [anubis, "status", "last"],
        "anubis list": [anubis, "list"],
        "anubis metrics": [anubis, "metrics"],
        "anubis validate": [anubis, "validate", "descriptor.toml"],
    }


def _time(command: list[str], folder: Path) -> float:
    environment = {**os.environ, "ANUBIS_HOME": str(folder / "home")}
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return time.perf_counter() - began


def _measure(folder: Path) -> dict[str, list[float]]:
    commands = _commands()
    timings: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            timings[name].append(_time(command, folder))
    return timings


def _stop_runtime(home: Path) -> None:
    pid = home / "runtime.pid"
    if pid.exists():
        os.kill(int(pid.read_text()), 15)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="anubis-bench-") as name:
        folder = Path(name)
        (folder / "descriptor.toml").write_text(DESCRIPTOR)
        anubis = str(Path(sys.executable).with_name("anubis"))
        try:
            _time([anubis, "run", "descriptor.toml"], folder)
            timings = _measure(folder)
        finally:
            _stop_runtime(folder / "home")
    floor = statistics.median(timings[BARE])
    print(f"{'command':<32}{'median ms':>10}{'ratio':>8}{'min/min':>9}   goal")
    for command, seconds in timings.items():
        ratio, least = statistics.median(seconds) / floor, min(seconds) / min(timings[BARE])
        goal = f"≤ {GOALS[command]:g}" if command in GOALS else ""
        median = statistics.median(seconds) * 1000
        print(f"{command:<32}{median:>10.1f}{ratio:>8.2f}{least:>9.2f}   {goal}")


if __name__ == "__main__":
    main()
