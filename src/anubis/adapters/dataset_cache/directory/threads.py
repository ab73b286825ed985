"""Threads of the cache's own: hashing a terabyte must not take those that everybody shares."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

MOST: Final = 16
"""Each writes, hashes or syncs; the disk and the processor are the bound, not their number."""


class Threads:
    """Calls what blocks. Who is cancelled waits for a call that was begun: the files it touches are
    somebody else's afterwards.
    """

    def __init__(self) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(MOST, "dataset-cache")

    async def call(self, function: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
        """The result of a function, from a thread. ``stop`` makes one that takes long end soon."""
        future = self._pool.submit(function)
        waiting = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not future.cancel():
                if stop is not None:
                    stop()
                await asyncio.wait([waiting])
                waiting.exception()  # looked at, or asyncio would complain that nobody did
            raise
