"""The API keeps what its OpenAPI document promises, whatever it is asked.

Schemathesis makes requests from the document, good ones and bad ones, and looks at every answer.
The service is real, over SQLite and sockets; its worker carries runs on an engine that plays
scripts, so that whatever is submitted starts no program.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import jsonschema
import pytest
import uvicorn

from anubis.adapters.access_store.sqlite import SqliteAccessStore
from anubis.adapters.action_store.sqlite import SqliteActionStore
from anubis.adapters.clock.system import SystemClock
from anubis.adapters.engine.fake import FakeEngine, Script
from anubis.adapters.event_bus.in_process import InProcessBus
from anubis.bootstrap import capacity, embedded, stores
from anubis.bootstrap.service import Service
from anubis.bootstrap.stores import Stores
from anubis.domain.dataset import Reference
from anubis.domain.observation import Stream
from anubis.domain.run import WorkerId
from anubis.entrypoints.api import app
from anubis.entrypoints.api.protocol import BoundedProtocol
from anubis.runtime import serving
from anubis.runtime.broadcasting import Broadcaster
from anubis.runtime.caretaking import Caretaker
from anubis.runtime.carrying import Workshop
from anubis.runtime.supervising import Supervisor
from anubis.runtime.working import Worker
from anubis.settings.model import Settings
from anubis.testing.datasets import PlayedCache

pytestmark = pytest.mark.acceptance

SECONDS = 50
"""How long Schemathesis may go on finding new requests."""

SEED = 20240517

HOOKS = """\
import schemathesis

TEXT = ("application/toml", "text/plain", "application/x-tar")


@schemathesis.serializer("application/toml", "application/x-tar")
def toml(ctx, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@schemathesis.hook
def filter_case(ctx, case):
    # A number sent as text is text: such a body breaks no promise.
    return case.media_type not in TEXT or isinstance(case.body, str | bytes)
"""

PLAYED = Script(output=((Stream.STDOUT, b"loss=0.25\nloss=0.5\n\xff\n"),))


@contextlib.asynccontextmanager
async def _served(settings: Settings, kept: Stores) -> AsyncIterator[Service]:
    """A service whose worker turns."""
    bus = InProcessBus()

    async def wake() -> None:
        bus.wake()
        broadcaster.wake()

    # A cache that is played: whatever address is made up, nothing is read from there.
    cache = PlayedCache(SystemClock())
    cache.hold(Reference(uri="https://data.example/set.tgz"))
    application = dataclasses.replace(
        embedded.over(kept, settings, wake), open_datasets=lambda: cache
    )
    broadcaster = Broadcaster(
        kept.runs, application.clock, InProcessBus(), reason=application.waiting
    )
    caring = Supervisor()
    service = Service(
        application=application,
        access=SqliteAccessStore(kept.database),
        actions=SqliteActionStore(kept.database),
        scripts=kept.scripts,
        settings=settings,
        requires_tokens=False,
        broadcaster=broadcaster,
        caretaker=Caretaker(application.open_datasets, caring, application.clock),
        started_at=application.clock.now(),
    )
    workshop = Workshop(
        worker=WorkerId("played"),
        store=kept.runs,
        engines={"process": FakeEngine(PLAYED)},
        logs=kept.logs,
        series=kept.series,
        clock=application.clock,
    )
    stop = asyncio.Event()

    async def failed(error: Exception) -> None:
        raise AssertionError("a task of the service died") from error

    async with Supervisor() as supervisor, caring:
        worker = Worker(
            workshop,
            bus,
            supervisor,
            capacities=capacity.capacities(settings),
            lease=settings.lease,
        )

        async def turn() -> None:
            await serving.serve(
                worker,
                kept.has_work,
                application.clock,
                stop=stop,
                idle_exit=None,
                pulse=service.pulse,
            )

        supervisor.start(turn, name="worker", failed=failed)
        supervisor.start(broadcaster.run, name="broadcasting", failed=failed)
        yield service
        stop.set()
        broadcaster.close()


class _Thread(threading.Thread):
    """A service in a thread of its own, so that the test can wait for another program."""

    def __init__(self, home: Path) -> None:
        super().__init__(name="service")
        self._settings = Settings(home=home)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.server: uvicorn.Server | None = None

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        embedded.make_home(self._settings)
        async with stores.opened(self._settings) as kept, _served(self._settings, kept) as service:
            config = uvicorn.Config(
                app.create(service), http=BoundedProtocol, lifespan="off", log_config=None
            )
            self.server = uvicorn.Server(config)
            await self.server.serve(sockets=[self._socket])

    def stop(self) -> None:
        if self.server is not None:
            self.server.should_exit = True
        self.join(timeout=60)
        self._socket.close()


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    thread = _Thread(tmp_path / "home")
    thread.start()
    try:
        yield thread.address
    finally:
        thread.stop()


def test_whatever_it_is_asked_it_answers_as_its_document_says(address: str, tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(HOOKS)
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"{address}/api/v1/openapi.json",
        *("--include-path-regex", "^/api/v1/"),
        *("--exclude-path", "/api/v1/events/stream"),  # has no end; see the tests of streams
        *("--checks", "all"),
        # What makes a descriptor valid is more than a schema of JSON can say.
        *("--exclude-checks", "positive_data_acceptance"),
        *("--max-time", str(SECONDS), "--max-examples", "15", "--seed", str(SEED)),
        *("--continue-on-failure", "--warnings", "off"),
        *("--suppress-health-check", "all"),  # about how slow the machine of the test is
    ]
    environment = {
        **os.environ,
        "SCHEMATHESIS_HOOKS": "hooks",
        "PYTHONPATH": str(tmp_path),
        "NO_COLOR": "1",
    }
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, timeout=SECONDS + 120
    )

    said = result.stdout.decode() + result.stderr.decode()
    assert result.returncode == 0, textwrap.shorten(said, 40_000, placeholder="…")
    assert httpx.get(f"{address}/api/v1/health").status_code == 200


def test_the_document_is_valid_openapi(address: str) -> None:
    document = httpx.get(f"{address}/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for path in document["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", ()):
                jsonschema.Draft202012Validator.check_schema(parameter["schema"])
