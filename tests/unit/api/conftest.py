"""Routes over a service in memory, asked without a socket."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from anubis.bootstrap.service import Service
from anubis.domain.access import Role
from anubis.domain.metric import MetricKey, MetricSource
from anubis.domain.observation import Stream
from anubis.domain.run import RunId, RunState, WorkerId
from anubis.entrypoints.api import app
from anubis.ports.run_store import Step
from anubis.stages.access import tokens
from anubis.testing import builders
from anubis.testing.clock import ManualClock
from anubis.testing.service import a_service

WORKER = WorkerId("w")
TOML = """\
spec_version = "0.1.0"
info.description = "For a test"
info.labels = {task_name = "train", team = "vision"}
ml.benchmark_code = "true"
"""


class World:
    """A service, somebody who asks it, and what happens to its runs meanwhile."""

    def __init__(self, home: Path, *, requires_tokens: bool = False) -> None:
        self.clock = ManualClock()
        self.service: Service = a_service(home, self.clock, requires_tokens=requires_tokens)
        self.store = self.service.application.store
        self.app = app.create(self.service)

    def asking(self, user: str = "ada", secret: str | None = None) -> httpx.AsyncClient:
        """Somebody who asks below ``/api/v1``."""
        headers = {"X-Anubis-User": user}
        if secret is not None:
            headers["Authorization"] = f"Bearer {secret}"
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.app),
            base_url="http://localhost/api/v1",
            headers=headers,
        )

    async def token(self, user: str, role: Role) -> str:
        """The secret of a new token."""
        wish = tokens.Wish(user=user, role=role, days=1)
        return (await tokens.issue(wish, self.service.access, self.clock)).secret

    async def a_run(self, *states: RunState, number: int = 0, **given: Any) -> RunId:
        """A run that went through these states; ``given`` is for the builder."""
        document = builders.a_document(TOML.encode(), name="train.toml", directory="")
        run = builders.a_run(number, document=document, **given)
        await self.store.add(run, document, builders.PLAN, "submitted")
        if states:
            await self.step(run.id, builders.a_step(run.id, *states))
        return run.id

    async def step(self, run_id: RunId, step: Step) -> None:
        """Store a step of a run as its worker would."""
        now, hour = self.clock.now(), timedelta(hours=1)
        states = set(RunState)
        await self.store.lease(
            WORKER, now=now, duration=hour, states=states, limit=1, among={run_id}
        )
        await self.store.apply(WORKER, step)

    async def output(self, run_id: RunId, *texts: bytes, stream: Stream = Stream.STDOUT) -> None:
        """Let the run have written these lines."""
        writer = await self.service.application.logs.writer(run_id)
        for text in texts:
            await writer.append("benchmark", stream, self.clock.now(), text)
        await writer.flush()

    async def samples(self, run_id: RunId, values: Mapping[str, Sequence[float]]) -> None:
        """Let the run have measured these values, a second apart."""
        writer = await self.service.application.series.writer(run_id)
        for name, column in values.items():
            key = MetricKey(unit="benchmark", name=name, source=MetricSource.PATTERN)
            instants = [second * 1_000_000 for second in range(len(column))]
            await writer.append({key: (instants, list(column))})

    async def record(self) -> list[tuple[str, str, str, bool]]:
        """Who did or was refused what to which, oldest first."""
        entries = await self.service.access.audit()
        return [(one.user, one.action, one.target, one.allowed) for one in reversed(entries)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A service without tokens."""
    return World(tmp_path)


@pytest.fixture
def guarded(tmp_path: Path) -> World:
    """A service that requires tokens."""
    return World(tmp_path, requires_tokens=True)


@pytest.fixture
async def ada(world: World) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody who asks the service without tokens."""
    async with contextlib.AsyncExitStack() as stack:
        yield await stack.enter_async_context(world.asking())
