"""Many runs at once through a real service, on nodes that exist only on paper."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import json
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import psutil

from anubis.adapters.engine.kubernetes import kinds
from anubis.adapters.engine.kubernetes.cluster import Cluster
from bench.kubernetes import counted
from bench.kubernetes.paper_nodes import LABEL
from bench.kubernetes.space import Space
from bench.service_process import ServiceProcess

CLIENTS = 20
LOOK_SECONDS = 1.0
PATIENCE = 1200.0
ACTIVE = ("SUBMITTED", "FETCHING", "QUEUED", "STARTING", "RUNNING", "FINISHING")

DESCRIPTOR = """\
spec_version = "0.1.0"
[info]
description = "One of many"
execution_engine = "kubernetes"
[env]
docker_image = "paper/nothing:1"
[ml]
benchmark_code = "true"
[kubernetes]
node_selector = {{ "{label}" = "{space}" }}
tolerations = [{{ key = "{label}", operator = "Exists" }}]
"""

CONFIG = """\
kubernetes_slots = {slots}
kubernetes_namespace = "{space}"
kubernetes_datasets = "none"
kubeconfig = "{kubeconfig}"
docker_host = "none"
"""

Calls = collections.Counter[tuple[str, str]]


@dataclasses.dataclass(slots=True, kw_only=True)
class Figures:
    """What a campaign cost."""

    runs: int
    accepted_in: float = 0.0  #: seconds, for all of them
    created_in: float = 0.0  #: from the first submission to the last Job
    ended_in: float = 0.0  #: from the first submission to the last end
    removed_in: float = 0.0  #: from the first submission until the cluster has nothing of them
    cpu_seconds: float = 0.0
    idle_bytes: int = 0
    peak_bytes: int = 0
    calls: Calls = dataclasses.field(default_factory=collections.Counter)
    states: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)


@dataclasses.dataclass(slots=True)
class JobCounter:
    """Sees Jobs appear at the API server. Ask it ``since`` a moment of ``time.monotonic``."""

    cluster: Cluster
    seen: list[float] = dataclasses.field(default_factory=list)

    @contextlib.asynccontextmanager
    async def counting(self) -> AsyncIterator[None]:
        """Count while in here."""
        version = (await self.cluster.list(kinds.JOB)).version
        task = asyncio.create_task(self._count(version))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _count(self, version: str) -> None:
        while True:
            async with self.cluster.watching(kinds.JOB, "", version, 3000) as changes:
                async for change in changes:
                    version = str(change["object"]["metadata"]["resourceVersion"])
                    if change["type"] == "ADDED":
                        self.seen.append(time.monotonic())


@contextlib.contextmanager
def service(space: Space, slots: int) -> Iterator[ServiceProcess]:
    """A service that counts what it calls."""
    with tempfile.TemporaryDirectory(prefix="anubis-bench-") as folder:
        home = Path(folder)
        words = CONFIG.format(slots=slots, space=space.name, kubeconfig=space.kubeconfig)
        (home / "config.toml").write_text(words)
        process = ServiceProcess(home, module="bench.kubernetes.counted")
        process.start()
        try:
            yield process
        finally:
            process.end()


def calls(process: ServiceProcess) -> Calls:
    """What a service has called so far."""
    assert process.process is not None
    file = process.home / counted.FILE
    file.unlink(missing_ok=True)
    process.process.send_signal(signal.SIGUSR1)
    give_up = time.monotonic() + 30
    while not file.exists():
        if time.monotonic() > give_up:
            raise RuntimeError("the service does not tell its calls")
        time.sleep(0.02)
    return collections.Counter({(verb, kind): n for verb, kind, n in json.loads(file.read_text())})


def cpu_seconds(process: ServiceProcess) -> float:
    """Of a service and of whom it started."""
    assert process.process is not None
    first = psutil.Process(process.process.pid)
    total = 0.0
    for one in (first, *first.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            total += times.user + times.system
    return total


class Campaign:
    """One service and one number of runs."""

    def __init__(self, space: Space, process: ServiceProcess, cluster: Cluster) -> None:
        self._space = space
        self._process = process
        self._cluster = cluster
        self._body = {
            "descriptor": DESCRIPTOR.format(label=LABEL, space=space.name),
            "name": "paper.toml",
        }

    async def wage(self, runs: int) -> Figures:
        """Warm up with one run, then submit all at once and wait until nothing is left."""
        async with self._session() as session:
            await self._submit(session)
            await self._settle(session)
            await self._see_all_gone()
            return await self._measure(session, runs)

    async def _measure(self, session: httpx.AsyncClient, runs: int) -> Figures:
        figures = Figures(runs=runs, idle_bytes=self._process.resident_bytes)
        calls_before, cpu_before = calls(self._process), cpu_seconds(self._process)
        jobs = JobCounter(self._cluster)
        watching = asyncio.create_task(self._watch_memory(figures))
        began, clock = time.monotonic(), time.time()
        async with jobs.counting():
            shares = [runs // CLIENTS + (n < runs % CLIENTS) for n in range(CLIENTS)]
            await asyncio.gather(*(self._client(session, share) for share in shares))
            figures.accepted_in = time.monotonic() - began
            await self._settle(session)
            await self._see_all_gone()
        figures.removed_in = time.monotonic() - began
        watching.cancel()
        figures.calls = calls(self._process) - calls_before
        figures.cpu_seconds = cpu_seconds(self._process) - cpu_before
        assert len(jobs.seen) == runs, f"{len(jobs.seen)} Jobs were made for {runs} runs"
        figures.created_in = jobs.seen[-1] - began
        await self._judge(session, figures, clock)
        return figures

    def _session(self) -> httpx.AsyncClient:
        headers = {"X-Anubis-User": "bench"}
        return httpx.AsyncClient(base_url=self._process.address, headers=headers, timeout=60)

    async def _client(self, session: httpx.AsyncClient, share: int) -> None:
        for _ in range(share):
            await self._submit(session)

    async def _submit(self, session: httpx.AsyncClient) -> None:
        answer = await session.post("/api/v1/runs", json=self._body)
        if answer.status_code not in (200, 201):
            raise RuntimeError(f"submission refused: {answer.status_code} {answer.text}")

    async def _settle(self, session: httpx.AsyncClient) -> None:
        """Until no run goes on. Asked seldom, since the service pays for the answer."""
        give_up = time.monotonic() + PATIENCE
        active = [("state", name) for name in ACTIVE]
        while time.monotonic() < give_up:
            answer = await session.get("/api/v1/runs", params=[*active, ("limit", "1")])
            if not answer.json()["runs"]:
                return
            await asyncio.sleep(LOOK_SECONDS)
        raise RuntimeError(f"after {PATIENCE:.0f} s some runs have not ended")

    async def _see_all_gone(self) -> None:
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            left = [await self._cluster.list(kind) for kind in (kinds.JOB, kinds.POD)]
            if not any(one.items for one in left):
                return
            await asyncio.sleep(LOOK_SECONDS)
        raise RuntimeError(f"after {PATIENCE:.0f} s the cluster still has something of runs")

    async def _watch_memory(self, figures: Figures) -> None:
        while True:
            figures.peak_bytes = max(figures.peak_bytes, self._process.resident_bytes)
            await asyncio.sleep(LOOK_SECONDS / 2)

    async def _judge(self, session: httpx.AsyncClient, figures: Figures, clock: float) -> None:
        """All must have succeeded; the last end, as it was stored."""
        found = [run async for run in self._stored(session)]
        figures.states = collections.Counter(str(run["state"]) for run in found)
        last = max(datetime.fromisoformat(str(run["state_since"])) for run in found)
        figures.ended_in = last.timestamp() - clock

    async def _stored(self, session: httpx.AsyncClient) -> AsyncIterator[Mapping[str, Any]]:
        cursor: str | None = None
        while True:
            query = {"limit": "500", **({"cursor": cursor} if cursor else {})}
            page = (await session.get("/api/v1/runs", params=query)).json()
            for run in page["runs"]:
                yield run
            if (cursor := page["next"]) is None:
                return
