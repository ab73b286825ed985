"""An application made of memory adapters, and the command line called inside this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from anubis.adapters.log_store.memory import MemoryLogStore
from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.adapters.schedule_store.memory import MemoryScheduleStore
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.adapters.series_store.memory import MemorySeriesStore
from anubis.bootstrap.application import Application
from anubis.bootstrap.local import LocalApplication
from anubis.domain.document import Document
from anubis.domain.observation import Stream
from anubis.domain.run import Run, RunId, RunState, WorkerId
from anubis.entrypoints.cli import lazy
from anubis.ports.engine import Capabilities
from anubis.ports.run_store import Step
from anubis.settings.model import Settings
from anubis.testing import builders
from anubis.testing.clock import NOON, ManualClock

PROCESS = Capabilities(
    name="process",
    strategies=frozenset({"single_node"}),
    needs_image=False,
    honours_affinity=True,
)
WORKER = WorkerId("worker")


class World:
    """What a test prepares before it calls a command."""

    def __init__(self, home: Path) -> None:
        self.woken = 0
        self.store = MemoryRunStore()
        self.schedules = MemoryScheduleStore()
        self.logs = MemoryLogStore()
        self.series = MemorySeriesStore()
        self.scripts = MemoryScriptStore(ManualClock(NOON))
        self.application = LocalApplication(
            settings=Settings(home=home),
            clock=ManualClock(NOON),
            store=self.store,
            schedule_store=self.schedules,
            logs=self.logs,
            series=self.series,
            script_store=self.scripts,
            engines={"process": PROCESS},
            wake_runtime=self._wake,
        )

    async def _wake(self) -> None:
        self.woken += 1

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Application]:
        yield self.application

    def call(self, *arguments: str) -> int:
        """Call a command; errors come out as they are."""
        code = lazy.group.main(list(arguments), obj=self.open, standalone_mode=False)
        return int(code or 0)

    def do(self, work: Callable[[], Any]) -> Any:
        """Await something while preparing."""

        async def done() -> Any:
            return await work()

        return asyncio.run(done())

    def add(self, run: Run, document: Document | None = None) -> RunId:
        given = document or builders.a_document()
        self.do(lambda: self.store.add(run, given, builders.PLAN, "submitted"))
        return run.id

    def move(self, run_id: RunId, *states: RunState, step: Step | None = None) -> None:
        async def moved() -> None:
            now, duration = NOON, builders.HOUR
            run = await self.store.get(run_id)
            await self.store.lease(WORKER, now=now, duration=duration, states=[run.state], limit=10)
            await self.store.apply(WORKER, step or builders.a_step(run_id, *states))

        self.do(moved)

    def finish(self, run_id: RunId, end: RunState = RunState.SUCCEEDED) -> None:
        self.move(run_id, *builders.PATH_TO_SUCCESS[:-1], end)

    def write(self, run_id: RunId, lines: Sequence[tuple[str, bytes]]) -> None:
        self.write_as(run_id, [("benchmark", *line) for line in lines])

    def write_as(self, run_id: RunId, lines: Sequence[tuple[str, str, bytes]]) -> None:
        """Each line with the unit that writes it."""

        async def written() -> None:
            writer = await self.logs.writer(run_id)
            for unit, stream, text in lines:
                await writer.append(unit, Stream(stream), NOON, text)
            await writer.flush()

        self.do(written)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "home")
