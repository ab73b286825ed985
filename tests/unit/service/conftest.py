"""The app over memory adapters, asked without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from anubis.adapters.access_store.memory import MemoryAccessStore
from anubis.adapters.action_store.memory import MemoryActionStore
from anubis.adapters.event_bus.in_process import InProcessBus
from anubis.adapters.log_store.memory import MemoryLogStore
from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.adapters.schedule_store.memory import MemoryScheduleStore
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.adapters.series_store.memory import MemorySeriesStore
from anubis.bootstrap.local import LocalApplication, no_datasets
from anubis.bootstrap.service import Service
from anubis.domain.access import Role
from anubis.entrypoints.api import app
from anubis.runtime.broadcasting import Broadcaster
from anubis.runtime.caretaking import Caretaker
from anubis.runtime.supervising import Supervisor
from anubis.settings.model import Settings
from anubis.stages.access import tokens
from anubis.testing.clock import NOON, ManualClock


class World:
    """A service, and somebody who asks it."""

    def __init__(self, home: Path, *, requires_tokens: bool, rate_burst: int = 1000) -> None:
        self.clock = ManualClock(NOON)
        self.access = MemoryAccessStore()
        self.actions = MemoryActionStore()
        self.store = MemoryRunStore()
        self.scripts = MemoryScriptStore(self.clock)
        settings = Settings(home=home, rate_limit=1.0, rate_burst=rate_burst)
        settings.runs.mkdir(parents=True)
        self.service = Service(
            application=LocalApplication(
                settings=settings,
                clock=self.clock,
                store=self.store,
                schedule_store=MemoryScheduleStore(),
                logs=MemoryLogStore(),
                series=MemorySeriesStore(),
                script_store=self.scripts,
                engines={},
                wake_runtime=self._wake,
            ),
            access=self.access,
            actions=self.actions,
            scripts=self.scripts,
            settings=settings,
            requires_tokens=requires_tokens,
            broadcaster=Broadcaster(self.store, self.clock, InProcessBus()),
            caretaker=Caretaker(no_datasets, Supervisor(), self.clock),
            started_at=NOON,
        )
        self.app = app.create(self.service)

    async def _wake(self) -> None:
        """Nobody carries runs here."""

    def asking(self, secret: str | None = None, **headers: str) -> httpx.AsyncClient:
        """A client with or without a token."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if secret is not None:
            given["Authorization"] = f"Bearer {secret}"
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=given)

    async def token(self, user: str, role: Role = Role.SUBMITTER, days: int = 90) -> tokens.Issued:
        """Make a token."""
        wish = tokens.Wish(user=user, role=role, days=days)
        return await tokens.issue(wish, self.access, self.clock)

    async def actions_on_record(self) -> list[tuple[str, str, bool]]:
        """Who did or was refused what, oldest first."""
        entries = await self.access.audit()
        return [(one.user, one.action, one.allowed) for one in reversed(entries)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """On loopback, without tokens."""
    return World(tmp_path / "home", requires_tokens=False)


@pytest.fixture
def guarded(tmp_path: Path) -> World:
    """With tokens in force."""
    return World(tmp_path / "home", requires_tokens=True)


@pytest.fixture
async def client(world: World) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody who asks on loopback."""
    async with world.asking() as asking:
        yield asking
