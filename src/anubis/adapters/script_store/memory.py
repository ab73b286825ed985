"""Script archives in memory, for tests and for installations that keep nothing."""

from __future__ import annotations

import hashlib
import io
from collections.abc import AsyncIterator
from pathlib import Path

from anubis.adapters.script_store import inspecting, naming, unpacking
from anubis.domain.errors import UserError


class MemoryScriptStore:
    """A dictionary of archives."""

    def __init__(self) -> None:
        self._archives: dict[str, bytes] = {}

    async def has(self, name: str) -> bool:
        """See the port."""
        return name in self._archives

    async def put(self, name: str, content: AsyncIterator[bytes]) -> None:
        """See the port."""
        naming.demand_legal(name)
        received = bytearray()
        async for part in content:
            received += part
            inspecting.demand_size(name, len(received))
        naming.demand_content(name, hashlib.sha1(received, usedforsecurity=False).hexdigest())
        inspecting.members(io.BytesIO(received), name)
        self._archives[name] = bytes(received)

    async def unpack(self, name: str, folder: str) -> None:
        """See the port."""
        naming.demand_legal(name)
        if name not in self._archives:
            raise UserError(f"script archive {name} is not here; upload it first")
        unpacking.unpack(io.BytesIO(self._archives[name]), name, Path(folder))
