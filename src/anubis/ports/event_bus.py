"""Wake whoever waits for work. The store decides; the bus only saves waiting time."""

from __future__ import annotations

from typing import Protocol


class EventBus(Protocol):
    """Wake-ups may be lost, late or doubled: nobody may rely on one for anything but latency."""

    def wake(self) -> bool:
        """Tell the worker that the store has news. Never blocks; whether anybody listens."""
        ...

    async def wait(self, seconds: float) -> bool:
        """Return True at the next wake-up, or False after ``seconds`` without one.

        A wake-up since the last call counts: then this returns at once.
        """
        ...
