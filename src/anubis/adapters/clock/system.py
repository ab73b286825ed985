"""The machine's own clock."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime


class SystemClock:
    """Real time."""

    def now(self) -> datetime:
        """The present moment, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since the machine started."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Really wait."""
        await asyncio.sleep(seconds)
