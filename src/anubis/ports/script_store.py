"""Keep the script archives that users upload, by name, until a run needs them."""

from __future__ import annotations

from collections.abc import AsyncIterable
from datetime import datetime
from typing import Protocol


class ScriptInbox(Protocol):
    """Where whoever submits leaves archives; a service has one too.

    An archive is whole and checked, or it is not there. Names are ``<hex digits>.tar``: the SHA-256
    of the content, or its SHA-1 for those of the original client. An archive counts as used at the
    moment when it is found by ``has``, put (again) or unpacked.
    """

    async def has(self, name: str) -> bool:
        """Whether an archive of this name can be unpacked. False for what is no legal name."""
        ...

    async def put(self, name: str, content: AsyncIterable[bytes]) -> None:
        """Store an archive. What is there already under this name is kept if it is the same.

        Raises UserError for a name that is not legal, or for an archive that leads out of its
        folder, holds links out, devices or too much, or is no tar, and TooMuch if all archives
        together would take more than they may; nothing is stored then.
        """
        ...


class ScriptStore(ScriptInbox, Protocol):
    """All that is done with archives where they are kept."""

    async def unpack(self, name: str, folder: str) -> None:
        """Unpack an archive into an existing empty folder. Raises UserError if it is not there."""
        ...

    async def read(self, name: str, *, most: int) -> bytes:
        """The whole archive, for those who send it elsewhere. Raises UserError if it is not there,
        TooMuch if it has more than ``most`` bytes.
        """
        ...

    async def forget_unused(self, before: datetime) -> int:
        """Remove the archives that were last used before a moment; gives how many.

        One that is used while this goes on stays, or is not found by whoever uses it: nobody is
        told that it is there and then misses it.
        """
        ...

    async def forget_unfinished(self, before: datetime) -> int:
        """Remove what is left of uploads that never ended, if nothing was added to them since a
        moment; gives how many.
        """
        ...
