"""Thousands of runs from twenty clients, random cancels and one restart: nothing may be lost.

Usage: python -m bench.load [--runs 10000] [--clients 20] [--kill] [--seed N]

Each submission is repeated under its idempotency key until the service acknowledges it. Every
program writes into a ledger outside Anubis that it ran. In the middle the service is restarted
(``--kill``: with SIGKILL). A watcher follows all events over the restart. Afterwards:

- the service knows exactly the runs that were acknowledged, each in a terminal state, entered once;
- SUCCEEDED ran exactly once, CANCELED was asked for and ran at most once, nothing else happened;
- the watcher saw every event once and in order.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import random
import signal
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path

import httpx

from bench.service_process import ServiceProcess

CANCELED_SHARE = 0.05
SLOTS = 16
TERMINAL = {"SUCCEEDED", "FAILED", "CANCELED", "ERROR"}
PATIENCE = 600.0
"""Seconds for all runs to end after the last was submitted."""

DESCRIPTOR = """\
spec_version = "0.1.0"
[info]
description = "Notes that it ran"
execution_engine = "process"
[ml]
benchmark_code = "sh -c 'echo ran >> {ledgers}/$ANUBIS_RUN_ID'"
"""


@dataclasses.dataclass(slots=True)
class Report:
    """What a campaign did and found."""

    states: Counter[str] = dataclasses.field(default_factory=Counter)
    submitted_in: float = 0.0
    ended_in: float = 0.0
    restart: float = 0.0  #: seconds from the signal to the end of the old process
    retries: int = 0
    events: int = 0
    faults: list[str] = dataclasses.field(default_factory=list)


class Campaign:
    """One service, many clients."""

    def __init__(self, service: ServiceProcess, ledgers: Path, *, runs: int, seed: int) -> None:
        self._service = service
        self._ledgers = ledgers
        self._runs = runs
        self._dice = random.Random(seed)
        self._acknowledged: list[str] = []
        self._to_cancel: set[str] = set()
        self._seen: list[tuple[int, str]] = []
        self._half = asyncio.Event()  # half of the runs are acknowledged
        self._done = asyncio.Event()
        self.report = Report()

    async def wage(self, clients: int, ending: int) -> Report:
        """Submit, cancel, restart, wait for the end, then judge."""
        began = time.monotonic()
        watcher = asyncio.create_task(self._watch())
        restart = asyncio.create_task(self._restart(ending))
        shares = [self._runs // clients + (n < self._runs % clients) for n in range(clients)]
        await asyncio.gather(*(self._client(n, share) for n, share in enumerate(shares)))
        await restart
        self.report.submitted_in = time.monotonic() - began
        async with self._session("judge") as session:
            await self._settle(session)
            self.report.ended_in = time.monotonic() - began
            await self._judge(session)
            await self._compare(session, watcher)
        return self.report

    def _session(self, user: str) -> httpx.AsyncClient:
        headers = {"X-Anubis-User": user}
        return httpx.AsyncClient(base_url=self._service.address, headers=headers, timeout=60)

    async def _client(self, number: int, share: int) -> None:
        async with self._session(f"client-{number}") as session:
            for _ in range(share):
                run_id = await self._submit(session)
                self._acknowledged.append(run_id)
                if len(self._acknowledged) == self._runs // 2:
                    self._half.set()
                if self._dice.random() < CANCELED_SHARE:
                    await asyncio.sleep(self._dice.choice((0.0, 0.0, 0.05, 0.5)))
                    await self._cancel(session, run_id)

    async def _submit(self, session: httpx.AsyncClient) -> str:
        body = {"descriptor": DESCRIPTOR.format(ledgers=self._ledgers), "name": "load.toml"}
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        answer = await self._insist(session, "/api/v1/runs", json=body, headers=headers)
        if answer.status_code not in (200, 201):
            raise RuntimeError(f"submission refused: {answer.status_code} {answer.text}")
        return str(answer.json()["run"]["id"])

    async def _cancel(self, session: httpx.AsyncClient, run_id: str) -> None:
        self._to_cancel.add(run_id)
        answer = await self._insist(session, f"/api/v1/runs/{run_id}/cancel")
        if answer.status_code not in (202, 409):  # 409: it had ended
            self.report.faults.append(f"{run_id} cancel: {answer.status_code} {answer.text}")

    async def _insist(
        self, session: httpx.AsyncClient, path: str, **given: object
    ) -> httpx.Response:
        """Post until somebody answers."""
        while True:
            try:
                answer = await session.post(path, **given)  # type: ignore[arg-type]  # passed on
            except httpx.TransportError:
                self.report.retries += 1
            else:
                if answer.status_code not in (429, 503):
                    return answer
                self.report.retries += 1
            await asyncio.sleep(0.1)

    async def _restart(self, ending: int) -> None:
        await self._half.wait()
        self.report.restart = await asyncio.to_thread(self._service.end, ending)
        await asyncio.to_thread(self._service.start)

    async def _settle(self, session: httpx.AsyncClient) -> None:
        give_up = time.monotonic() + PATIENCE
        active = [("state", name) for name in _ACTIVE]
        while time.monotonic() < give_up:
            answer = await session.get("/api/v1/runs", params=[*active, ("limit", "1")])
            if not answer.json()["runs"]:
                return
            await asyncio.sleep(0.2)
        self.report.faults.append(f"after {PATIENCE:.0f} s some runs have not ended")

    async def _judge(self, session: httpx.AsyncClient) -> None:
        stored: dict[str, str] = {}
        cursor: str | None = None
        while True:
            query = {"limit": "500", **({"cursor": cursor} if cursor else {})}
            page = (await session.get("/api/v1/runs", params=query)).json()
            stored.update({run["id"]: run["state"] for run in page["runs"]})
            if (cursor := page["next"]) is None:
                break
        if len(set(self._acknowledged)) != len(self._acknowledged):
            self.report.faults.append("one id was acknowledged for two submissions")
        for missing in set(self._acknowledged) - set(stored):
            self.report.faults.append(f"{missing} was acknowledged and is lost")
        for extra in set(stored) - set(self._acknowledged):
            self.report.faults.append(f"{extra} exists though nobody submitted it")
        for run_id, state in stored.items():
            self.report.states[state] += 1
            self._judge_one(run_id, state)

    def _judge_one(self, run_id: str, state: str) -> None:
        ledger = self._ledgers / run_id
        ran = len(ledger.read_text().split()) if ledger.exists() else 0
        is_true = {"SUCCEEDED": ran == 1, "CANCELED": run_id in self._to_cancel and ran <= 1}
        if not is_true.get(state, False):
            self.report.faults.append(f"{run_id} is {state}, and its program ran {ran} times")

    async def _compare(self, session: httpx.AsyncClient, watcher: asyncio.Task[None]) -> None:
        """What the watcher saw must be the feed, and each run must have ended once in it."""
        feed = await self._feed(session)
        for _ in range(100):
            if len(self._seen) < len(feed):
                await asyncio.sleep(0.1)
        self._done.set()
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)
        self.report.events = len(feed)
        if self._seen != feed:
            self.report.faults.append(f"the watcher saw {len(self._seen)} of {len(feed)} events")
        ends = Counter(run for _, run in feed if run.endswith("!"))
        for run, times in ends.items():
            if times != 1:
                self.report.faults.append(f"{run[:-1]} ended {times} times")

    async def _feed(self, session: httpx.AsyncClient) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        after = 0
        while True:
            query = {"after": str(after), "limit": "1000"}
            page = (await session.get("/api/v1/events", params=query)).json()["events"]
            if not page:
                return found
            found += [_mark(event) for event in page]
            after = page[-1]["sequence"]

    async def _watch(self) -> None:
        """Follow all events, and go on where a broken connection left off."""
        last = "0"
        while not self._done.is_set():
            with contextlib.suppress(httpx.HTTPError):
                headers = {"Last-Event-ID": last}
                async with (
                    self._session("watcher") as session,
                    session.stream(
                        "GET", "/api/v1/events/stream", headers=headers, timeout=30
                    ) as stream,
                ):
                    async for line in stream.aiter_lines():
                        if line.startswith("data:"):
                            event = json.loads(line[5:])
                            self._seen.append(_mark(event))
                            last = str(event["sequence"])
            await asyncio.sleep(0.05)


_ACTIVE = ("SUBMITTED", "FETCHING", "QUEUED", "STARTING", "RUNNING", "FINISHING")


def _mark(event: dict[str, object]) -> tuple[int, str]:
    """Sequence and run of an event; an exclamation mark if the run ended with it."""
    data = event["data"]
    assert isinstance(data, dict)
    ended = event["kind"] == "state" and data.get("to") in TERMINAL
    sequence = event["sequence"]
    assert isinstance(sequence, int)
    return sequence, f"{event['run']}{'!' if ended else ''}"


async def campaign(*, runs: int, clients: int, ending: int, seed: int) -> Report:
    """Wage one campaign in a temporary home."""
    with tempfile.TemporaryDirectory(prefix="anubis-load-") as folder:
        home, ledgers = Path(folder, "home"), Path(folder, "ledgers")
        home.mkdir(mode=0o700)
        ledgers.mkdir()
        (home / "config.toml").write_text(f"slots = {SLOTS}\n")
        service = ServiceProcess(home)
        await asyncio.to_thread(service.start)
        try:
            return await Campaign(service, ledgers, runs=runs, seed=seed).wage(clients, ending)
        finally:
            await asyncio.to_thread(service.end)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--kill", action="store_true", help="end the service with SIGKILL")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    options = parser.parse_args()
    ending = signal.SIGKILL if options.kill else signal.SIGTERM
    report = asyncio.run(
        campaign(runs=options.runs, clients=options.clients, ending=ending, seed=options.seed)
    )
    print(f"seed {options.seed}: {options.runs} runs from {options.clients} clients")
    print("  ended   " + ", ".join(f"{state} {n}" for state, n in sorted(report.states.items())))
    print(
        f"  all acknowledged after {report.submitted_in:.0f} s, ended after {report.ended_in:.0f} s"
    )
    print(
        f"  restart {report.restart:.2f} s to leave, {report.retries} requests had to be repeated"
    )
    print(f"  events  {report.events}")
    print(f"  faults  {len(report.faults)} (goal: 0)")
    for fault in report.faults[:50]:
        print(f"    {fault}")
    sys.exit(1 if report.faults else 0)


if __name__ == "__main__":
    main()
