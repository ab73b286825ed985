"""A daemon that goes away in the middle loses nothing, and invents no success."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from tests.docker_engines import ADDRESS, left, opened

from anubis.domain.observation import EndCause, OutputChunk
from anubis.testing.contracts.engine import a_new_run, a_plan, end, output, watch

LINES = 300_000
ALL_LINES = b"".join(b"%d\n" % number for number in range(1, LINES + 1))


class Road:
    """The way to the real daemon, on which connections can be lost."""

    def __init__(self) -> None:
        self.loses: Callable[[bytes], bool] = lambda _: False  #: by a request's first line
        self.breaks: dict[bytes, int] = {}  #: after how many bytes an answer breaks off, once
        self.stalls: dict[bytes, float] = {}  #: for how many seconds an answer stalls, once
        self.lost: list[bytes] = []
        self._open: set[asyncio.StreamWriter] = set()

    def cut_all(self) -> None:
        """Break every connection."""
        for writer in self._open:
            writer.transport.abort()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to and fro."""
        self._open.add(writer)
        try:
            with contextlib.suppress(OSError, EOFError):
                request = await reader.readuntil(b"\r\n")
                if self.loses(request):
                    self.lost.append(request)
                else:
                    await self._carry_on(request, reader, writer)
        finally:
            self._open.discard(writer)
            writer.close()

    async def _carry_on(
        self, request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        most = next((self.breaks.pop(word) for word in [*self.breaks] if word in request), None)
        stall = next((self.stalls.pop(word) for word in [*self.stalls] if word in request), 0.0)
        there, back = await asyncio.open_unix_connection(ADDRESS.removeprefix("unix://"))
        try:
            back.write(request)
            sending = asyncio.create_task(_copy(reader, back, None))
            await asyncio.sleep(stall)
            await _copy(there, writer, most)
            sending.cancel()
            await asyncio.wait([sending])
        finally:
            back.close()
        if most is not None:
            self.lost.append(request)


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: int | None
) -> None:
    with contextlib.suppress(OSError):
        while (most is None or most > 0) and (data := await reader.read(65536)):
            writer.write(data if most is None else data[:most])
            await writer.drain()
            most = None if most is None else most - len(data)


@contextlib.asynccontextmanager
async def road(home: Path) -> AsyncIterator[tuple[Road, str]]:
    """A road to the daemon, and its address."""
    found, path = Road(), home / "docker.sock"
    tasks: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(found.carry(reader, writer)))

    server = await asyncio.start_unix_server(begin, path)
    try:
        yield found, f"unix://{path}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def test_a_container_that_could_not_be_asked_to_start_is_started_later(
    image: str, tmp_path: Path
) -> None:
    """The daemon is away when its guard asks: nothing ran yet, so nothing has succeeded."""
    run_id = a_new_run()
    async with road(tmp_path) as (way, address), opened(tmp_path, address=address) as engine:
        way.loses = lambda request: b"/start " in request and not way.lost
        await engine.start(run_id, a_plan("sh", "-c", "echo ran; exit 3", image=image))
        seen = await watch(engine, run_id)
        assert len(way.lost) == 1
        assert output(seen) == b"ran\n"
        assert (end(seen).cause, end(seen).exit_code) == (EndCause.EXITED, 3)
    assert left(tmp_path) == ""


async def test_a_log_that_breaks_off_at_the_end_is_read_again(image: str, tmp_path: Path) -> None:
    run_id = a_new_run()
    async with road(tmp_path) as (way, address), opened(tmp_path, address=address) as engine:
        way.breaks[b"/logs"] = 1_000_000
        await engine.start(run_id, a_plan("seq", str(LINES), image=image))
        seen = await watch(engine, run_id)
        assert len(way.lost) == 1
        assert output(seen) == ALL_LINES
        assert end(seen).exit_code == 0
    assert left(tmp_path) == ""


async def test_a_container_that_ends_while_its_log_is_read_slowly_has_said_all(
    image: str, tmp_path: Path
) -> None:
    """The daemon forgets, for those who follow, what it could not send before the end."""
    run_id = a_new_run()
    async with road(tmp_path) as (way, address), opened(tmp_path, address=address) as engine:
        way.stalls[b"follow=1"] = 4.0
        await engine.start(run_id, a_plan("seq", str(LINES), image=image))
        assert output(await watch(engine, run_id)) == ALL_LINES
    assert left(tmp_path) == ""


async def test_a_daemon_that_was_away_when_a_container_ended_still_has_all_it_said(
    image: str, tmp_path: Path
) -> None:
    run_id = a_new_run()
    script = "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.3; done"
    async with road(tmp_path) as (way, address), opened(tmp_path, address=address) as engine:
        await engine.start(run_id, a_plan("sh", "-c", script, image=image))
        async for one in engine.observe(run_id):
            if isinstance(one, OutputChunk):
                break
        way.loses = lambda _: True
        way.cut_all()
        await asyncio.sleep(4)
        way.loses = lambda _: False
        seen = await watch(engine, run_id)
        assert output(seen) == b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"
        assert end(seen).exit_code == 0
    assert left(tmp_path) == ""
