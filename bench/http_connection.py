"""A bare HTTP connection: on two shared cores, a heavier client would measure itself."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Self
from urllib.parse import urlsplit

Answer = tuple[int, bytes]


class Connection:
    """Keeps one connection open and asks one thing after another. Use as a context."""

    def __init__(self, address: str) -> None:
        self._host, self._port = urlsplit(address).hostname or "", urlsplit(address).port or 80
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        return self

    async def __aexit__(self, *exception: object) -> None:
        assert self._writer is not None
        self._writer.close()

    async def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request and read its answer whole."""
        await self.send(method, path, body, headers)
        status, length = await self.head()
        assert self._reader is not None
        return status, await self._reader.readexactly(length)

    async def send(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a request."""
        content = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}:{self._port}"]
        lines += [f"{name}: {text}" for name, text in (headers or {}).items()]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
        assert self._writer is not None
        self._writer.write("\r\n".join([*lines, "", ""]).encode() + content)
        await self._writer.drain()

    async def head(self) -> tuple[int, int]:
        """Read the status and the headers of an answer: its status, and the length of its body."""
        assert self._reader is not None
        text = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *fields = text.split("\r\n")
        named = dict(field.lower().split(":", 1) for field in fields if ":" in field)
        return int(first.split()[1]), int(named.get("content-length", 0))

    async def until(self, mark: bytes) -> bytes:
        """Read up to and with ``mark``: for answers that do not end."""
        assert self._reader is not None
        return await self._reader.readuntil(mark)


Asking = Callable[[Connection], Awaitable[Any]]


async def timed(address: str, ask: Asking, *, count: int, connections: int) -> list[float]:
    """Ask ``count`` times over several connections at once; the seconds each took, in order of
    their ends, with the seconds of the whole as the last element.
    """
    left = iter(range(count))
    took: list[float] = []

    async def one() -> None:
        async with Connection(address) as connection:
            for _ in left:
                began = time.perf_counter()
                await ask(connection)
                took.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(connections)))
    return [*took, time.perf_counter() - began]


def row(name: str, took: Sequence[float]) -> str:
    """One line of a table: per second, median and 99th percentile in milliseconds."""
    *each, whole = took
    cuts = statistics.quantiles(each, n=100)
    return f"{name:<44}{len(each) / whole:>9.0f}{cuts[49] * 1e3:>10.2f}{cuts[98] * 1e3:>10.2f}"


HEADER = f"{'':<44}{'per s':>9}{'p50 ms':>10}{'p99 ms':>10}"
