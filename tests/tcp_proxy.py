"""A way to a server that a test can cut, or let go dead without a word."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Proxy:
    """Passes connections on to ``host:port``; its own port is known once it serves."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self.is_open = True  #: whether new connections are taken
        self.port = 0

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[Proxy]:
        server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.cut()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    def cut(self) -> None:
        """End all connections at once, as a server does that dies."""
        for writer in self._writers:
            writer.transport.abort()

    def go_dead(self) -> None:
        """Pass nothing on in connections that are there, and do not end them."""
        self._flows.clear()
        self._flows = asyncio.Event()
        self._flows.set()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            if self.is_open:
                await self._pass(reader, writer)
        writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        flows = self._flows
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        mine = {writer, far_writer}
        self._writers |= mine
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._copy(reader, far_writer, flows))
                tasks.create_task(self._copy(far_reader, writer, flows))
        except* OSError:
            pass
        finally:
            self._writers -= mine
            far_writer.transport.abort()

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flows: asyncio.Event
    ) -> None:
        while content := await reader.read(65536):
            await flows.wait()
            writer.write(content)
            await writer.drain()
        writer.transport.abort()
