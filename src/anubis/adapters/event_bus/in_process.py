"""Wake-ups between tasks of one process."""

from __future__ import annotations

import asyncio


class InProcessBus:
    """An asyncio event, cleared by whoever waits."""

    def __init__(self) -> None:
        self._news = asyncio.Event()

    def wake(self) -> bool:
        """Set the event; the worker is in this process, so it listens."""
        self._news.set()
        return True

    async def wait(self, seconds: float) -> bool:
        """Wait for the event, at most so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True
