"""Wake whoever waits for work. The store decides; the bus only saves waiting time."""

from __future__ import annotations

from typing import Protocol


class EventBus(Protocol):
    """Wake-ups may be lost, late or doubled: nobody may rely on one for anything but latency."""

    def wake(self) -> bool:
        """Tell the worker that the store has news. Never blocks; whether anybody listens."""
        ...

    async def wait(self, seconds: float) -> None:
        """Return at the next wake-up, or after ``seconds``. Wake-ups since the last call count."""
        ...
