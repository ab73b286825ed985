"""Kill our own processes at random moments, and look for anything lost, doubled or untrue.

Usage: python -m bench.chaos [--kills 1000] [--seed N]

Every program keeps a ledger of its own, outside Anubis: that it began, which line it has flushed,
that it came to its end. Afterwards each run is compared with its ledger:

- it reached a terminal state, and no later than the deadline of this campaign;
- it began at most once;
- every line in the ledger is in the stored output, once and in order;
- SUCCEEDED means that the ledger has its end; ERROR means that we killed this run's shim;
- no process of any run is left, and nothing in the engine's folder.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from anubis.adapters.engine.process.guardian import files
from anubis.bootstrap import embedded
from anubis.bootstrap.application import Submission
from anubis.bootstrap.local import LocalApplication
from anubis.domain.document import Document
from anubis.domain.run import Run, RunId, RunState
from anubis.ports.log_store import LogQuery
from anubis.runtime import locking
from anubis.settings.model import Settings

PROGRAM = """
import os, sys, time
ledger = os.open(os.path.join(sys.argv[1], os.environ["ANUBIS_RUN_ID"]),
                 os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(ledger, b"start\\n")
for number in range(int(sys.argv[2])):
    print(f"line {number}", flush=True)
    os.write(ledger, b"%d\\n" % number)
    time.sleep(float(sys.argv[3]))
os.write(ledger, b"end\\n")
"""
VICTIMS = ("runtime", "zygote", "shim", "shim", "cli")
IN_FLIGHT = 6
PATIENCE = 120.0


@dataclasses.dataclass(slots=True)
class Report:
    """What a campaign did and found."""

    kills: dict[str, int] = dataclasses.field(default_factory=dict)
    states: dict[str, int] = dataclasses.field(default_factory=dict)
    lines: int = 0
    faults: list[str] = dataclasses.field(default_factory=list)

    @property
    def kill_count(self) -> int:
        """All processes that were killed."""
        return sum(self.kills.values())


class Campaign:
    """One home, many runs, many kills."""

    def __init__(self, app: LocalApplication, folder: Path, seed: int) -> None:
        self._app = app
        self._dice = random.Random(seed)
        self._ledgers = folder / "ledgers"
        self._ledgers.mkdir()
        self._program = folder / "program.py"
        self._program.write_text(PROGRAM)
        self._runs: list[RunId] = []
        self._shot: set[RunId] = set()  # runs whose shim we killed
        self._commands: list[asyncio.subprocess.Process] = []
        self.report = Report()

    async def wage(self, kills: int) -> Report:
        """Submit and kill until ``kills`` are done, then wait for the dust and look."""
        while self.report.kill_count < kills:
            while await self._active() < IN_FLIGHT:
                await self._submit()
            await asyncio.sleep(self._dice.uniform(0.0, 0.15))
            if self._dice.random() < 0.2:  # somebody uses a command now and then
                await self._app.ensure_runtime()
            self._kill(self._dice.choice(VICTIMS))
        await self._settle()
        for run_id in self._runs:
            await self._judge(await self._app.store.get(run_id))
        self._look_for_leftovers()
        return self.report

    async def _active(self) -> int:
        return len(await self._app.store.active(1000))

    async def _submit(self) -> None:
        descriptor = self._descriptor()
        if self._dice.random() < 0.2:
            await self._submit_by_command(descriptor)
            return
        document = Document(name="chaos.toml", directory="", content=descriptor.encode())
        submission = Submission(document=document, submitter="chaos", environment=os.environ)
        submitted = await self._app.submit(submission)
        self._runs.append(submitted.run.id)

    def _descriptor(self) -> str:
        lines = self._dice.choice((1, 20, 200))
        pause = self._dice.choice((0.0, 0.001, 0.01))
        args = f"{self._program} {self._ledgers} {lines} {pause}"
        return (
            'spec_version = "0.1.0"\n[info]\ndescription = "chaos"\n'
            f'execution_engine = "process"\n[ml]\nbenchmark_code = "$(ANUBIS_PYTHON) {args}"\n'
        )

    async def _submit_by_command(self, descriptor: str) -> None:
        """The same through ``anubis run``, whose process may be killed while it waits."""
        file = self._ledgers.parent / f"{len(self._commands)}.toml"
        file.write_text(descriptor)
        known = {run.id for run in await self._app.store.active(1000)}
        self._commands.append(
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "anubis",
                "run",
                str(file),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                stdin=asyncio.subprocess.DEVNULL,
                env=embedded.runtime_environment(self._app.settings),
            )
        )
        await asyncio.sleep(self._dice.uniform(0.0, 0.6))
        for run in await self._app.store.active(1000):
            if run.id not in known:
                self._runs.append(run.id)

    def _kill(self, kind: str) -> None:
        pid = getattr(self, f"_find_{kind}")()
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.report.kills[kind] = self.report.kills.get(kind, 0) + 1

    def _find_runtime(self) -> int | None:
        return _runtime_of(self._app.settings)

    def _find_shim(self) -> int | None:
        shims = self._shims()
        if not shims:
            return None
        run_id, pid = self._dice.choice(sorted(shims.items()))
        self._shot.add(run_id)
        return pid

    def _find_zygote(self) -> int | None:
        """The parent of some shim, unless it is gone and init has adopted the shim."""
        parents = [_parent(pid) for pid in self._shims().values()]
        living = [pid for pid in parents if pid is not None and _name(pid) == "anubis-zygote"]
        return self._dice.choice(living) if living else None

    def _find_cli(self) -> int | None:
        living = [command.pid for command in self._commands if command.returncode is None]
        return self._dice.choice(living) if living else None

    def _shims(self) -> dict[RunId, int]:
        found = {}
        for directory in self._app.settings.runs.glob("*"):
            pid = _holder(directory / files.LOCK)
            # A runtime that looks whether a run is guarded holds its lock for a moment, too.
            if pid is not None and _name(pid) == "anubis-shim":
                found[RunId(directory.name)] = pid
        return found

    async def _settle(self) -> None:
        give_up = time.monotonic() + PATIENCE
        while await self._active() and time.monotonic() < give_up:
            await self._app.wake_runtime()
            await asyncio.sleep(0.1)
        for command in self._commands:
            with contextlib.suppress(ProcessLookupError):
                command.kill()
            await command.wait()
        self._runs = list(dict.fromkeys(self._runs))

    async def _judge(self, run: Run) -> None:
        self.report.states[run.state] = self.report.states.get(run.state, 0) + 1
        ledger = self._read_ledger(run.id)
        stored = await self._stored(run.id)
        flushed = [f"line {entry}" for entry in ledger if entry.isdigit()]
        self.report.lines += len(flushed)
        checks = {
            "is not terminal": run.state.is_terminal,
            "ran twice": ledger.count("start") <= 1,
            "lost output": stored[: len(flushed)] == flushed,
            "has output twice or out of order": len(set(stored)) == len(stored),
            "is said to have succeeded but did not end": (
                run.state is not RunState.SUCCEEDED or "end" in ledger
            ),
            "did not succeed though nobody killed its shim": (
                run.state is RunState.SUCCEEDED or run.id in self._shot
            ),
        }
        for fault, holds in checks.items():
            if not holds:
                self.report.faults.append(
                    f"{run.id} {fault}: {run.state}, {run.outcome and run.outcome.reason}; "
                    f"ledger {ledger[-2:]}, {len(flushed)} flushed, {len(stored)} stored"
                )

    def _read_ledger(self, run_id: RunId) -> list[str]:
        path = self._ledgers / run_id
        return path.read_text().split() if path.exists() else []

    async def _stored(self, run_id: RunId) -> list[str]:
        lines = self._app.logs.lines(run_id, LogQuery())
        return [line.text.decode().rstrip("\n") async for line in lines]

    def _look_for_leftovers(self) -> None:
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                environment = (process / "environ").read_bytes().split(b"\0")
                for run_id in self._runs:
                    if f"ANUBIS_RUN_ID={run_id}".encode() in environment:
                        self.report.faults.append(f"{run_id} left process {process.name} behind")


def _runtime_of(settings: Settings) -> int | None:
    """The living runtime, as it wrote down itself; a new one may not have done so yet."""
    if not locking.is_held(settings.runtime_lock):
        return None
    try:
        pid = int(settings.runtime_pid.read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if b"\0runtime\0" in command else None


def _holder(lock: Path) -> int | None:
    """Who took this lock, asked of the kernel."""
    try:
        inode = lock.stat().st_ino
    except OSError:
        return None
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if fields[1] == "FLOCK" and fields[5].rsplit(":", 1)[1] == str(inode):
            # A run that went away meanwhile leaves its inode to the next one.
            return int(fields[4]) if lock.exists() else None
    return None


def _name(pid: int) -> str:
    """What a process calls itself: we kill by number, but only who we mean."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _parent(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(status.rsplit(")", 1)[1].split()[1])


async def campaign(kills: int, seed: int) -> Report:
    """Wage one campaign in a temporary home."""
    with tempfile.TemporaryDirectory(prefix="anubis-chaos-") as folder:
        settings = Settings(home=Path(folder) / "home", slots=3)
        embedded.make_home(settings)
        (settings.home / "config.toml").write_text("slots = 3\nidle_exit = 5\n")
        async with embedded.application(settings) as app:
            report = await Campaign(app, Path(folder), seed).wage(kills)
        await _stop_runtime(settings)
        return report


async def _stop_runtime(settings: Settings) -> None:
    """End the runtime, and wait until its zygote has gone with it."""
    while pid := _runtime_of(settings):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        await asyncio.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    options = parser.parse_args()
    began = time.monotonic()
    report = asyncio.run(campaign(options.kills, options.seed))
    print(f"seed {options.seed}: {report.kill_count} kills in {time.monotonic() - began:.0f} s")
    print("  killed  " + ", ".join(f"{kind} {n}" for kind, n in sorted(report.kills.items())))
    print("  runs    " + ", ".join(f"{state} {n}" for state, n in sorted(report.states.items())))
    print(f"  lines   {report.lines} flushed by the programs")
    print(f"  faults  {len(report.faults)} (goal: 0)")
    for fault in report.faults:
        print(f"    {fault}")
    sys.exit(1 if report.faults else 0)


if __name__ == "__main__":
    main()
