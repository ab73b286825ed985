"""Script archives in memory, for tests and for installations that keep nothing."""

from __future__ import annotations

import io
from collections.abc import AsyncIterable
from datetime import datetime
from pathlib import Path

from anubis.adapters.script_store import inspecting, naming, room, unpacking
from anubis.ports.clock import Clock


class MemoryScriptStore:
    """A dictionary of archives."""

    def __init__(self, clock: Clock, *, most: int = room.MOST_KEPT) -> None:
        self._clock = clock
        self._most = most
        self._archives: dict[str, bytes] = {}
        self._used: dict[str, datetime] = {}

    async def has(self, name: str) -> bool:
        """See the port."""
        if name not in self._archives:
            return False
        self._used[name] = self._clock.now()
        return True

    async def put(self, name: str, content: AsyncIterable[bytes]) -> None:
        """See the port."""
        naming.demand_legal(name)
        received = bytearray()
        async for part in content:
            received += part
            inspecting.demand_size(name, len(received))
        found = naming.fingerprint(name)
        found.update(bytes(received))
        naming.demand_content(name, found)
        inspecting.members(io.BytesIO(received), name)
        if name not in self._archives:
            kept = sum(map(len, self._archives.values()))
            room.demand_room(name, len(received), kept=kept, most=self._most)
        self._archives[name] = bytes(received)
        self._used[name] = self._clock.now()

    async def unpack(self, name: str, folder: str) -> None:
        """See the port."""
        naming.demand_legal(name)
        if not await self.has(name):
            raise naming.missing(name)
        unpacking.unpack(io.BytesIO(self._archives[name]), name, Path(folder))

    async def read(self, name: str, *, most: int) -> bytes:
        """See the port."""
        naming.demand_legal(name)
        if not await self.has(name):
            raise naming.missing(name)
        room.demand_bounded(name, len(self._archives[name]), most=most)
        return self._archives[name]

    async def forget_unused(self, before: datetime) -> int:
        """See the port."""
        unused = [name for name, moment in self._used.items() if moment < before]
        for name in unused:
            del self._archives[name], self._used[name]
        return len(unused)

    async def forget_unfinished(self, before: datetime) -> int:  # noqa: ARG002 - see below
        """None: what does not end is never kept."""
        return 0
