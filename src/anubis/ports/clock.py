"""Time, as something that can be given."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Tell the time and wait. Tests give a clock they move by hand."""

    def now(self) -> datetime:
        """The present moment, in UTC, with its time zone."""
        ...

    def monotonic(self) -> float:
        """Seconds from some moment on, for rhythms: never goes back, whoever sets the clock."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; cancelling the wait is safe."""
        ...
