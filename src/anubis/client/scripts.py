"""Code for runs: archives that a service keeps, and sending it those that it has not."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Final

from anubis.adapters.script_store import packing
from anubis.client.calling import Call, segment
from anubis.client.transport import Transport

TAR: Final = "application/x-tar"

_MISSING: Final = 404
_TAKES_LONG = timedelta(minutes=2)
"""Between two signs of life: the service checks a large archive and puts it on its disk."""


class ScriptsClient:
    """The archives of a service."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def upload(self, path: str | Path) -> str:
        """Pack a file or folder and send it, unless the service has it. Gives the archive's name,
        for the ``script`` of a document.

        Raises UserError for what cannot be packed.
        """
        return (await packing.bring(str(path), self)).name

    async def has(self, name: str) -> bool:
        """Whether the service has an archive, and need not be sent it."""
        call = Call(method="HEAD", path=_path(name), tells=(_MISSING,))
        return (await self._transport.send(call)).status != _MISSING

    async def put(self, name: str, content: AsyncIterable[bytes]) -> None:
        """Send an archive. Repeated when the service does not answer, if the content can be had
        again: an iterator cannot.
        """
        call = Call(
            method="PUT",
            path=_path(name),
            headers={"Content-Type": TAR},
            parts=content,
            is_repeatable=not isinstance(content, AsyncIterator),
            takes=_TAKES_LONG,
        )
        await self._transport.send(call)


def _path(name: str) -> str:
    return f"/scripts/{segment(name)}"
