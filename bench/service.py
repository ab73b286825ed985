"""What the service costs: submitting, listing, starting, and a thousand watchers.

Usage: python -m bench.service [--runs 1000000] [--watchers 1000]

A real ``anubis serve`` on loopback, durable, with ten thousand and then with a million runs stored.
While submissions are counted, a run that wants the machine for itself keeps the others waiting:
what is measured is the service, not the programs. The peer is MLflow's tracking server over SQLite,
asked for its nearest equivalents (create a run, search runs) on the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from bench import listing, peers
from bench.http_connection import HEADER, Asking, Connection, row, timed
from bench.service_process import ServiceProcess

SMALL = 10_000
SUBMISSIONS, LISTINGS, STARTS = 2000, 1000, 40
CONNECTIONS = 16

DESCRIPTOR = """\
spec_version = "0.1.0"
[info]
description = "For a bench"
execution_engine = "process"
[hardware]
exclusive = true
[ml]
benchmark_code = "{command}"
"""


def _body(command: str) -> dict[str, str]:
    return {"descriptor": DESCRIPTOR.format(command=command), "name": "bench.toml"}


def _submit(command: str) -> Asking:
    async def ask(connection: Connection) -> dict[str, Any]:
        status, answer = await connection.ask("POST", "/api/v1/runs", _body(command))
        assert status == 201, answer
        run: dict[str, Any] = json.loads(answer)["run"]
        return run

    return ask


def _get(path: str) -> Asking:
    async def ask(connection: Connection) -> bytes:
        status, answer = await connection.ask("GET", path)
        assert status == 200, answer
        return answer

    return ask


async def _at_size(folder: Path, runs: int) -> None:
    """Figures of a service with so many runs in its store."""
    home = folder / f"home-{runs}"
    home.mkdir(mode=0o700)
    await listing.build(home / "anubis.sqlite", runs)
    service = ServiceProcess(home)
    await asyncio.to_thread(service.start)
    try:
        async with Connection(service.address) as connection:
            blocker = await _submit("sleep 600")(connection)
            await _state(connection, blocker["id"], "RUNNING")
            for name, ask, count, connections in (
                ("submit, 1 connection", _submit("true"), SUBMISSIONS // 4, 1),
                (f"submit, {CONNECTIONS} connections", _submit("true"), SUBMISSIONS, CONNECTIONS),
                ("list 50 newest", _get("/api/v1/runs"), LISTINGS, 1),
                (
                    f"list 50 newest, {CONNECTIONS} connections",
                    _get("/api/v1/runs"),
                    LISTINGS,
                    CONNECTIONS,
                ),
                (
                    "list 50 failed of a benchmark",
                    _get("/api/v1/runs?benchmark=benchmark-17&state=FAILED"),
                    LISTINGS,
                    1,
                ),
                ("one run", _get(f"/api/v1/runs/{blocker['id']}"), LISTINGS, 1),
            ):
                took = await timed(service.address, ask, count=count, connections=connections)
                print(row(f"{runs:,} runs: {name}", took), flush=True)
    finally:
        await asyncio.to_thread(service.end)


async def _state(connection: Connection, run_id: str, wanted: str) -> dict[str, Any]:
    """Ask until the run is there."""
    for _ in range(5000):
        run: dict[str, Any] = json.loads(await _get(f"/api/v1/runs/{run_id}")(connection))
        if run["state"] == wanted:
            return run
        await asyncio.sleep(0.002)
    raise TimeoutError(f"{run_id} is {run['state']}, not {wanted}: {run['outcome']}")


async def _starts(service: ServiceProcess) -> None:
    """From sending the submission to the start of the program, and to the stored end."""
    begun, ended = [], []
    async with Connection(service.address) as connection:
        for _ in range(STARTS):
            sent, clock = time.time(), time.perf_counter()
            run = await _submit("true")(connection)
            done = await _state(connection, run["id"], "SUCCEEDED")
            ended.append(time.perf_counter() - clock)
            begun.append(_seconds(done["started_at"]) - sent)
    print(
        f"from submit to start {statistics.median(begun) * 1e3:.1f} ms, until the client sees the "
        f"stored end {statistics.median(ended) * 1e3:.1f} ms (medians of {STARTS} runs of 'true')"
    )


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


async def _watchers(service: ServiceProcess, count: int) -> None:
    """Memory of many watchers of everything, and how soon all of them hear of a run."""
    before = service.resident_bytes
    watchers = [Connection(service.address) for _ in range(count)]
    for watcher in watchers:
        await watcher.__aenter__()
        await watcher.send("GET", "/api/v1/events/stream")
        await watcher.head()
    await asyncio.sleep(1)
    memory = service.resident_bytes - before
    async with Connection(service.address) as connection:
        heard = [asyncio.create_task(_heard(watcher)) for watcher in watchers]
        await asyncio.sleep(0.5)
        sent = time.perf_counter()
        await _submit("true")(connection)
        moments = await asyncio.wait_for(asyncio.gather(*heard), 60)
    for watcher in watchers:
        await watcher.__aexit__()
    print(
        f"{count} watchers: {memory / 1e6:.1f} MB more memory in the service "
        f"({memory / count / 1e3:.1f} kB each); the first heard of a submission after "
        f"{(min(moments) - sent) * 1e3:.0f} ms, the last after "
        f"{(max(moments) - sent) * 1e3:.0f} ms "
        "(goals: 50 MB, 250 ms; the watchers run on the same cores)"
    )


async def _heard(watcher: Connection) -> float:
    await watcher.until(b"data:")
    return time.perf_counter()


async def _live(folder: Path, watchers: int) -> None:
    home = folder / "home-live"
    home.mkdir(mode=0o700)
    service = ServiceProcess(home)
    await asyncio.to_thread(service.start)
    try:
        await _starts(service)
        await _watchers(service, watchers)
    finally:
        print(f"SIGTERM to exit: {await asyncio.to_thread(service.end):.2f} s")


async def _peer(folder: Path) -> None:
    """The same questions to MLflow's tracking server."""
    program = peers.program("mlflow")
    if program is None:
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    store = f"sqlite:///{folder}/mlflow.sqlite"
    words = ["server", "--backend-store-uri", store, "--port", str(port), "--workers", "1"]
    process = await asyncio.create_subprocess_exec(
        program,
        *words,
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"},
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        await _measure_peer(f"http://127.0.0.1:{port}")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        await process.wait()


async def _measure_peer(address: str) -> None:
    await _answers(address)
    for name, ask, count, connections in (
        ("MLflow: create a run, 1 connection", _mlflow_create, 200, 1),
        (f"MLflow: create a run, {CONNECTIONS} connections", _mlflow_create, 600, CONNECTIONS),
        ("MLflow: search 50 newest of 800", _mlflow_search, 200, 1),
    ):
        took = await timed(address, ask, count=count, connections=connections)
        print(row(name, took), flush=True)


async def _mlflow_create(connection: Connection) -> None:
    body = {"experiment_id": "0", "start_time": time.time_ns() // 1_000_000, "run_name": "bench"}
    status, answer = await connection.ask("POST", "/api/2.0/mlflow/runs/create", body)
    assert status == 200, answer


async def _mlflow_search(connection: Connection) -> None:
    body = {"experiment_ids": ["0"], "max_results": 50}
    status, answer = await connection.ask("POST", "/api/2.0/mlflow/runs/search", body)
    assert status == 200, answer


async def _answers(address: str) -> None:
    for _ in range(600):
        try:
            async with Connection(address) as connection:
                await connection.ask("GET", "/health")
                return
        except (OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.1)
    raise TimeoutError("MLflow's server does not answer")


async def _measure(runs: int, watchers: int) -> None:
    with tempfile.TemporaryDirectory(prefix="anubis-bench-") as folder:
        steps: list[Callable[[Path], Any]] = [
            lambda place: _live(place, watchers),
            lambda place: _at_size(place, SMALL),
            lambda place: _at_size(place, runs),
            _peer,
        ]
        for number, step in enumerate(steps):
            if number == 1:
                print(f"\n{HEADER}")
            await step(Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--watchers", type=int, default=1000)
    options = parser.parse_known_args()[0]
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(_measure(options.runs, options.watchers))


if __name__ == "__main__":
    main()
