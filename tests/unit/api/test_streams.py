"""Live streams over real sockets and SQLite: clients leave, services restart, nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import resource
import socket
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx
import pytest
import uvicorn

from anubis.adapters.access_store.sqlite import SqliteAccessStore
from anubis.adapters.action_store.sqlite import SqliteActionStore
from anubis.adapters.event_bus.in_process import InProcessBus
from anubis.adapters.run_store.sqlite import SqliteRunStore
from anubis.adapters.sqlite import Database
from anubis.bootstrap import embedded, stores
from anubis.bootstrap.service import Service
from anubis.domain.access import Role
from anubis.domain.run import RunId, RunState, WorkerId
from anubis.entrypoints.api import app
from anubis.entrypoints.api.protocol import BoundedProtocol
from anubis.entrypoints.api.resources import streaming
from anubis.ports.run_store import Step
from anubis.runtime.broadcasting import Broadcaster
from anubis.runtime.caretaking import Caretaker
from anubis.runtime.supervising import Supervisor
from anubis.settings.model import Settings
from anubis.stages.access import tokens
from anubis.testing import builders
from anubis.testing.clock import NOON

WORKER = WorkerId("w")
PATIENCE = 60.0


class Listening:
    """A service that listens on loopback, over the stores of a home. Nobody carries its runs."""

    def __init__(self, service: Service, port: int) -> None:
        self.service = service
        self.address = f"http://127.0.0.1:{port}/api/v1"
        self.port = port

    async def watched_by(self, count: int) -> None:
        """Wait until so many watch."""
        async with asyncio.timeout(PATIENCE):
            while self.service.broadcaster.watchers != count:
                await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def listening(
    home: Path, *, most: int = 5000, most_each: int | None = None, requires_tokens: bool = False
) -> AsyncIterator[Listening]:
    settings = Settings(home=home)
    embedded.make_home(settings)
    async with stores.opened(settings) as kept:

        async def wake() -> None:
            broadcaster.wake()

        application = embedded.over(kept, settings, wake)
        broadcaster = Broadcaster(
            kept.runs, application.clock, InProcessBus(), most=most, most_each=most_each
        )
        service = Service(
            application=application,
            access=SqliteAccessStore(kept.database),
            actions=SqliteActionStore(kept.database),
            scripts=kept.scripts,
            settings=settings,
            requires_tokens=requires_tokens,
            broadcaster=broadcaster,
            caretaker=Caretaker(application.open_datasets, Supervisor(), application.clock),
            started_at=application.clock.now(),
        )
        with contextlib.closing(socket.create_server(("127.0.0.1", 0), backlog=2048)) as bound:
            async with _running(service, bound):
                yield Listening(service, bound.getsockname()[1])


@contextlib.asynccontextmanager
async def _running(service: Service, bound: socket.socket) -> AsyncIterator[None]:
    config = uvicorn.Config(
        app.create(service), http=BoundedProtocol, lifespan="off", log_config=None, backlog=2048
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[assignment,method-assign]
    tasks = [
        asyncio.create_task(service.broadcaster.run()),
        asyncio.create_task(server.serve(sockets=[bound])),
    ]
    try:
        yield
    finally:
        service.broadcaster.close()
        server.should_exit = True
        await asyncio.gather(*tasks)


@contextlib.asynccontextmanager
async def elsewhere(home: Path) -> AsyncIterator[SqliteRunStore]:
    """The same store as another process sees it."""
    settings = Settings(home=home)
    embedded.make_home(settings)
    async with Database.open(settings.database) as database:
        yield SqliteRunStore(database)


async def submit(store: SqliteRunStore, number: int) -> RunId:
    document = builders.a_document()
    run = builders.a_run(number, document=document)
    await store.add(run, document, builders.PLAN, "submitted")
    return run.id


class Watcher:
    """Reads a stream of events over a raw connection, as often as it likes."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    async def visit(self, port: int, path: str, until: int) -> None:
        """Come with the last id seen, and stay until so many events were seen in all."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(_request(path, self.seen[-1] if self.seen else 0))
            await _skip_head(reader)
            while len(self.seen) < until and (line := await reader.readline()):
                if number := re.fullmatch(rb"id: (\d+)\n", line):
                    self.seen.append(int(number[1]))
        finally:
            writer.transport.abort()


def _request(path: str, last: int) -> bytes:
    text = f"GET /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: {last}\r\n\r\n"
    return text.encode()


async def _skip_head(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head


async def test_reconnects_and_restarts_neither_lose_nor_double(tmp_path: Path) -> None:
    """Another process stores; the watcher leaves at any moment; the service restarts twice."""
    events, rest = 300, random.Random(7)
    watcher = Watcher()
    async with elsewhere(tmp_path) as store, asyncio.timeout(PATIENCE):

        async def store_all() -> None:
            for number in range(events):
                await submit(store, number)

        storing = asyncio.create_task(store_all())
        for goal in (events // 3, events // 2, events):
            async with listening(tmp_path) as service:
                while len(watcher.seen) < goal:
                    soon = min(goal, len(watcher.seen) + rest.randint(1, 40))
                    await watcher.visit(service.port, "/events/stream", soon)
        await storing

    assert watcher.seen == [*range(1, events + 1)]


async def test_a_service_that_stops_ends_its_streams_in_order(tmp_path: Path) -> None:
    async with elsewhere(tmp_path) as store, asyncio.timeout(PATIENCE):
        run_id = await submit(store, 1)
        async with httpx.AsyncClient() as client:
            async with listening(tmp_path) as service:
                url = f"{service.address}/runs/{run_id}/stream"
                watching = asyncio.create_task(client.get(url))
                await service.watched_by(1)
            answer = await watching
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert "event: run" in answer.text
    assert "event: end" not in answer.text


async def test_a_run_is_followed_over_a_restart_to_its_end(tmp_path: Path) -> None:
    watcher = Watcher()
    async with elsewhere(tmp_path) as store, asyncio.timeout(PATIENCE):
        run_id = await submit(store, 1)
        await submit(store, 2)  # has the second sequence, which is not for this watcher
        path = f"/runs/{run_id}/stream"
        async with listening(tmp_path) as service:
            first = asyncio.create_task(watcher.visit(service.port, path, 3))
            await _lease(store, run_id)
            await _move(store, run_id, RunState.FETCHING, RunState.QUEUED)
            await first
        await _move(store, run_id, *builders.PATH_TO_SUCCESS[2:])
        async with listening(tmp_path) as service, httpx.AsyncClient() as client:
            last = {"Last-Event-ID": str(watcher.seen[-1])}
            answer = await client.get(f"{service.address}/runs/{run_id}/stream", headers=last)

    kinds = re.findall(r"^event: (\w+)$", answer.text, flags=re.MULTILINE)
    assert kinds == ["run", "metrics", "event", "event", "event", "event", "end"]
    rest = [int(number) for number in re.findall(r"^id: (\d+)$", answer.text, re.MULTILINE)]
    assert watcher.seen + rest == [1, 3, 4, 5, 6, 7, 8]


async def _lease(store: SqliteRunStore, run_id: RunId) -> None:
    hour = builders.HOUR
    states = set(RunState)
    await store.lease(WORKER, now=NOON, duration=hour, states=states, limit=1, among={run_id})


async def _move(store: SqliteRunStore, run_id: RunId, *states: RunState) -> None:
    await store.apply(WORKER, builders.a_step(run_id, *states))


@pytest.fixture
def many_files() -> None:
    """A thousand watchers are two thousand sockets in this process."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))


@pytest.mark.usefixtures("many_files")
async def test_a_thousand_watchers_see_everything(tmp_path: Path) -> None:
    watchers, events = [Watcher() for _ in range(1000)], 20
    async with elsewhere(tmp_path) as store, listening(tmp_path) as service:
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            for watcher in watchers:
                group.create_task(watcher.visit(service.port, "/events/stream", events))
            await service.watched_by(len(watchers))
            for number in range(events):
                await submit(store, number)
        await service.watched_by(0)

    assert all(watcher.seen == [*range(1, events + 1)] for watcher in watchers)


async def test_a_client_that_vanishes_is_forgotten(tmp_path: Path) -> None:
    async with listening(tmp_path) as service:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        writer.write(_request("/events/stream", 0))
        await _skip_head(reader)
        await service.watched_by(1)
        writer.transport.abort()
        await service.watched_by(0)


async def test_a_client_that_sends_too_much_is_let_go(tmp_path: Path) -> None:
    async with listening(tmp_path) as service, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        head = _request("/events/stream", 0).removesuffix(b"\r\n")
        writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n")
        await _skip_head(reader)
        await service.watched_by(1)
        with contextlib.suppress(ConnectionError):
            for _ in range(20):
                writer.write(b"100000\r\n" + bytes(0x100000) + b"\r\n")
                await writer.drain()
        await service.watched_by(0)
        writer.transport.abort()


async def test_a_stream_ends_when_its_token_is_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "SILENCE", 0.01)
    monkeypatch.setattr(streaming, "LOOK_EVERY", 0.02)
    async with listening(tmp_path, requires_tokens=True) as service, asyncio.timeout(PATIENCE):
        access, clock = service.service.access, service.service.application.clock
        issued = [
            await tokens.issue(tokens.Wish(user=user, role=Role.VIEWER), access, clock)
            for user in ("ada", "eve")
        ]
        async with contextlib.AsyncExitStack() as stack:
            client = await stack.enter_async_context(httpx.AsyncClient())
            for one in issued:
                headers = {"Authorization": f"Bearer {one.secret}"}
                url = f"{service.address}/events/stream"
                answer = await stack.enter_async_context(client.stream("GET", url, headers=headers))
            await service.watched_by(2)
            await access.revoke(issued[1].token.id, now=clock.now())
            async for _ in answer.aiter_bytes():
                pass
            await service.watched_by(1)


async def test_silence_is_broken_by_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "SILENCE", 0.01)
    async with listening(tmp_path) as service, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        writer.write(_request("/events/stream", 0))
        await _skip_head(reader)
        comments = 0
        while comments < 3:
            comments += await reader.readline() == b":\n"
        writer.transport.abort()


async def test_a_client_that_does_not_read_is_let_go_and_can_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "PATIENCE", 0.1)
    notes = [builders.a_note("x" * 50_000) for _ in range(200)]
    async with elsewhere(tmp_path) as store, listening(tmp_path) as service:
        stalled = socket.create_connection(("127.0.0.1", service.port))
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with contextlib.closing(stalled):
            stalled.sendall(_request("/events/stream", 0))
            await service.watched_by(1)
            run_id = await submit(store, 1)
            await _lease(store, run_id)
            await store.apply(WORKER, Step(run_id=run_id, notes=notes))
            await service.watched_by(0)
        watcher = Watcher()
        async with asyncio.timeout(PATIENCE):
            while len(watcher.seen) < 201:  # on a busy machine it may be let go once more
                await watcher.visit(service.port, "/events/stream", 201)
    assert watcher.seen == [*range(1, 202)]


async def test_one_stream_too_many_is_429(tmp_path: Path) -> None:
    async with listening(tmp_path, most=1) as service, httpx.AsyncClient() as client:
        url = f"{service.address}/events/stream"
        async with client.stream("GET", url):
            await service.watched_by(1)
            answer = await client.get(url)
        assert answer.status_code == 429
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize("path", ["/events/stream", "/runs/last/stream"])
async def test_a_user_has_no_more_streams_than_one_may(tmp_path: Path, path: str) -> None:
    """By the name of the token's user; another user goes on to be served."""
    async with (
        listening(tmp_path, most_each=1, requires_tokens=True) as service,
        httpx.AsyncClient() as client,
    ):
        await service.service.application.store.add(
            builders.a_run(), builders.a_document(), builders.PLAN, "submitted"
        )
        access, clock = service.service.access, service.service.application.clock
        ada, eve = [
            (await tokens.issue(tokens.Wish(user=user, role=Role.VIEWER), access, clock)).secret
            for user in ("ada", "eve")
        ]
        url = f"{service.address}{path}"
        async with client.stream("GET", url, headers={"Authorization": f"Bearer {ada}"}):
            await service.watched_by(1)
            refused = await client.get(url, headers={"Authorization": f"Bearer {ada}"})
            async with client.stream(
                "GET", url, headers={"Authorization": f"Bearer {eve}"}
            ) as served:
                assert served.status_code == 200
    assert refused.status_code == 429
    assert "ada has 1 streams open" in refused.text


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/runs/nothing/stream", {}, 404),
        ("/events/stream", {"Last-Event-ID": "x"}, 422),
        ("/events/stream", {"Last-Event-ID": "-1"}, 422),
        ("/events/stream", {"Last-Event-ID": "9" * 20}, 422),
        ("/events/stream?after=-1", {}, 422),
        ("/events/stream?after=x", {}, 422),
        ("/events/stream?frobnicate=1", {}, 422),
    ],
)
async def test_a_stream_that_cannot_be_opened_is_a_problem(
    tmp_path: Path, path: str, headers: dict[str, str], status: int
) -> None:
    async with listening(tmp_path) as service, httpx.AsyncClient() as client:
        answer = await client.get(service.address + path, headers=headers)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        await service.watched_by(0)


async def _first_ids(client: httpx.AsyncClient, url: str, headers: dict[str, str]) -> Sequence[int]:
    async with client.stream("GET", url, headers=headers) as answer:
        async for text in answer.aiter_text():
            if found := re.findall(r"^id: (\d+)$", text, re.MULTILINE):
                return [int(number) for number in found]
    return []


@pytest.mark.parametrize(
    ("query", "headers", "expected"),
    [
        ("?after=1", {}, [2, 3]),
        ("?after=1", {"Last-Event-ID": "2"}, [3]),
        ("?after=1", {"Last-Event-ID": ""}, [2, 3]),
        ("", {"Last-Event-ID": "0"}, [1, 2, 3]),
    ],
)
async def test_the_last_id_wins_over_the_query(
    tmp_path: Path, query: str, headers: dict[str, str], expected: list[int]
) -> None:
    async with elsewhere(tmp_path) as store, listening(tmp_path) as service:
        for number in range(3):
            await submit(store, number)
        async with httpx.AsyncClient() as client, asyncio.timeout(PATIENCE):
            url = f"{service.address}/events/stream{query}"
            assert await _first_ids(client, url, headers) == expected
