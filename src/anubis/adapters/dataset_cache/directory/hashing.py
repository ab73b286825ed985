"""Hash files while they arrive, a little behind whoever writes them.

The bytes are read back from the page cache, which is quicker than they are hashed. So it does not
matter in which order they come, over how many connections, or whether an earlier process wrote
some of them.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from anubis.adapters.dataset_cache.directory import trees
from anubis.adapters.dataset_cache.directory.threads import Threads

STEP_BYTES: Final = 64 * 1024**2
"""At most, in one go: a cancelled transfer waits for no more than this."""


class Follower:
    """One algorithm, over one file after the other."""

    def __init__(self, algorithm: str, threads: Threads) -> None:
        self.algorithm = algorithm
        self.digests: dict[str, str] = {}
        self._threads = threads

    async def follow(self, name: str, path: Path, more: Callable[[int], Awaitable[int]]) -> None:
        """Hash one file. ``more`` waits until there is more than so many bytes, and tells how
        many there are; no more than that means the end.
        """
        digest = hashlib.new(self.algorithm, usedforsecurity=False)
        position = 0
        while (end := await more(position)) > position:
            end = min(end, position + STEP_BYTES)
            await self._threads.call(functools.partial(_update, digest, path, position, end))
            position = end
        self.digests[name] = digest.hexdigest()


def _update(digest: hashlib._Hash, path: Path, start: int, end: int) -> None:
    buffer = memoryview(bytearray(min(trees.READ_BYTES, end - start)))
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        while start < end and (count := file.readinto(buffer[: end - start])):
            digest.update(buffer[:count])
            start += count
