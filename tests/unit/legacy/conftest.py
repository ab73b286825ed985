"""The original wire over a service in memory, asked without a socket."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from anubis.bootstrap.service import Service
from anubis.domain.access import Role
from anubis.domain.observation import Stream
from anubis.domain.run import RunId, RunState, WorkerId
from anubis.entrypoints.api import app
from anubis.stages.access import tokens
from anubis.testing import builders
from anubis.testing.clock import ManualClock
from anubis.testing.contracts.script_store import Archive
from anubis.testing.service import a_service

WORKER = WorkerId("w")
TOML = b"""\
spec_version = "0.1.0"
info.description = "For a test"
ml.benchmark_code = "true"
"""


class Wire:
    """A service, and a client of the original kind."""

    scheduled = TOML + b'info.scheduling = "0 3 * * *"\n'  #: a descriptor with a schedule

    def __init__(self, home: Path, *, requires_tokens: bool = False) -> None:
        self.clock = ManualClock()
        self.service: Service = a_service(home, self.clock, requires_tokens=requires_tokens)
        self.store = self.service.application.store
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app.create(self.service)),
            base_url="http://localhost:8080",
        )

    def message(self, payload: dict[str, Any], client: str = "me") -> dict[str, Any]:
        """A message as the client makes it."""
        visited = [{"svc": "anubis-client", "tstamp": 1572441443000, "version": "0.6.2"}]
        return {
            "message_id": "0d9e6d4f-7a1b-4a5c-9d3e-1f2a3b4c5d6e",
            "client_id": client,
            "client_version": "0.6.2",
            "client_sha1": "5" * 40,
            "client_username": "someone",
            "date": "Wed Oct 30 13:17:23 UTC 2019",
            "visited": visited,
            "payload": payload,
        }

    async def submit(
        self, content: bytes = TOML, *, script: Archive | None = None, sha1: str = "", **more: Any
    ) -> httpx.Response:
        """Submit a descriptor, and perhaps scripts."""
        toml = {
            "descriptor_filename": "bench.toml",
            "sha1": sha1 or hashlib.sha1(content).hexdigest(),
            "doc": base64.b64encode(content).decode(),
        }
        files: dict[str, Any] = {"submit-event": (None, json.dumps(self.message({"toml": toml})))}
        if script is not None:
            files["script"] = (script.name, script.content)
        return await self.http.post("/api/job/descriptor", files=files, **more)

    async def submitted(self, content: bytes = TOML) -> str:
        """Submit a descriptor that is good; the id it gets."""
        answer = await self.submit(content)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def cancel(self, target: str, *, client: str = "me", **args: Any) -> httpx.Response:
        """Cancel something, without saying of which type the body is."""
        payload = {"command": "cancel", "args": {"target_action_id": target, **args}}
        content = json.dumps(self.message(payload, client))
        return await self.http.request("DELETE", f"/api/job/{client}/{target}", content=content)

    async def status(self, action: str, since: str = "0", client: str = "me") -> list[Any]:
        """What a client that polls is told."""
        path = f"/api/job/{client}/{action}"
        answer = await self.http.get(path, params={"since": since})
        if answer.status_code == 404:
            assert answer.content == b""
            return []
        assert answer.status_code == 200, answer.text
        return list(answer.json())

    async def texts(self, action: str, client: str = "me") -> list[str]:
        """The texts of all that was told."""
        return [one["payload"]["message"] for one in await self.status(action, client=client)]

    async def move(self, run_id: str, *states: RunState) -> None:
        """Let the run go through these states."""
        run = RunId(run_id)
        await self.store.lease(
            WORKER,
            now=self.clock.now(),
            duration=timedelta(hours=1),
            states=set(RunState),
            limit=1,
            among={run},
        )
        step = builders.a_step(run, *states, at=self.clock.now())
        await self.store.apply(WORKER, step)

    async def output(self, run_id: str, *texts: bytes, unit: str = "benchmark") -> None:
        """Let the run have written these lines."""
        writer = await self.service.application.logs.writer(RunId(run_id))
        for text in texts:
            await writer.append(unit, Stream.STDOUT, self.clock.now(), text)
        await writer.flush()

    async def token(self, user: str, role: Role) -> str:
        """The secret of a new token."""
        wish = tokens.Wish(user=user, role=role, days=1)
        return (await tokens.issue(wish, self.service.access, self.clock)).secret


@pytest.fixture
async def wire(tmp_path: Path) -> AsyncIterator[Wire]:
    """A service without tokens."""
    wire = Wire(tmp_path)
    async with contextlib.aclosing(wire.http):
        yield wire


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Wire]:
    """A service that requires tokens."""
    wire = Wire(tmp_path, requires_tokens=True)
    async with contextlib.aclosing(wire.http):
        yield wire
