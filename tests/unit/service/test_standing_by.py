"""A replica that does not lead: what it passes on, and what it answers itself."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator

import httpx
import pytest
import trustme

from anubis.entrypoints.api import listening
from anubis.entrypoints.api.standing_by import Address, standing_by
from anubis.testing.clock import NOON


class Standby:
    """One replica, and who leads as it knows."""

    def __init__(self, secure: ssl.SSLContext | None = None) -> None:
        self.leader: Address | None = None
        self.listener = listening.bind("127.0.0.1", 0)
        self.port = self.listener.bound[1]
        self.address = self.listener.address(is_secure=secure is not None)
        self.secure = secure

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        with contextlib.closing(self.listener.socket):
            async with standing_by(self.listener.socket, self.secure, lambda: self.leader, NOON):
                yield


@contextlib.asynccontextmanager
async def leading(answer: bytes, *, heard: list[bytes]) -> AsyncIterator[Address]:
    """Somebody who answers each connection with these bytes, once it has said something."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1024))
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield host, port


async def test_while_nobody_leads_it_lives_and_is_not_ready() -> None:
    standby = Standby()
    async with standby.open(), httpx.AsyncClient(base_url=standby.address) as client:
        health = await client.get("/api/v1/health")
        ready = await client.get("/api/v1/ready")
        other = await client.post("/api/v1/runs", json={})

    assert (health.status_code, health.json()["status"]) == (200, "ok")
    assert ready.status_code == 503
    assert ready.json()["checks"][0]["name"] == "leader"
    assert other.status_code == 503
    assert other.headers["retry-after"] == "2"
    assert other.headers["connection"] == "close"  # the next answer may be the leader's
    assert other.headers["content-type"] == "application/problem+json"


async def test_it_passes_bytes_on_as_they_are() -> None:
    heard: list[bytes] = []
    large = b"x" * 3_000_000
    standby = Standby()
    async with leading(large, heard=heard) as standby.leader, standby.open():
        reader, writer = await asyncio.open_connection("127.0.0.1", standby.port)
        writer.write(b"\x16\x03 not even HTTP")
        answer = await reader.read(-1)
        writer.close()

    assert heard == [b"\x16\x03 not even HTTP"]
    assert answer == large


async def test_who_asks_and_falls_silent_is_answered_all_the_same() -> None:
    standby = Standby()
    async with leading(b"done", heard=[]) as standby.leader, standby.open():
        reader, writer = await asyncio.open_connection("127.0.0.1", standby.port)
        writer.write(b"question")
        writer.write_eof()
        assert await reader.read(-1) == b"done"
        writer.close()


async def test_a_leader_that_is_gone_is_none() -> None:
    standby = Standby()
    with socket.create_server(("127.0.0.1", 0)) as gone:
        standby.leader = gone.getsockname()
    async with standby.open(), httpx.AsyncClient(base_url=standby.address) as client:
        assert (await client.get("/api/v1/health")).status_code == 200
        assert (await client.get("/api/v1/ready")).status_code == 503


async def test_it_speaks_tls_where_the_service_does() -> None:
    authority = trustme.CA()
    server, client_side = (
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
        ssl.create_default_context(),
    )
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(client_side)
    standby = Standby(server)
    async with (
        standby.open(),
        httpx.AsyncClient(base_url=standby.address, verify=client_side) as client,
    ):
        assert (await client.get("/api/v1/health")).status_code == 200


async def test_the_listener_is_left_open_for_whoever_serves_next() -> None:
    standby = Standby()
    with contextlib.closing(standby.listener.socket):
        async with standing_by(standby.listener.socket, None, lambda: None, NOON):
            pass
        waiting = asyncio.create_task(asyncio.open_connection("127.0.0.1", standby.port))
        reader, writer = await waiting  # in the backlog: nobody has accepted it
        accepted, _ = await asyncio.get_running_loop().sock_accept(standby.listener.socket)
        accepted.close()
        assert await reader.read(1) == b""
        writer.close()


async def test_connections_end_when_it_stands_by_no_more(
    recwarn: pytest.WarningsRecorder,
) -> None:
    standby = Standby()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(-1)
        writer.close()

    async with await asyncio.start_server(never, "127.0.0.1", 0) as server:
        standby.leader = server.sockets[0].getsockname()
        async with standby.open():
            reader, writer = await asyncio.open_connection("127.0.0.1", standby.port)
            writer.write(b"hello")
            await writer.drain()
            await asyncio.sleep(0.05)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read(-1) == b""
        writer.close()

    assert not list(recwarn)
