"""Whether the runtime is alive: when its worker last turned, and how late its event loop is."""

from __future__ import annotations

from anubis.ports.clock import Clock

LISTEN_EVERY = 0.5
"""Seconds. Often enough to see a loop that is blocked, rare enough to cost nothing."""

TURN_WITHIN = 15.0
"""Seconds. A turn waits for a second at most; one that takes so much longer hangs."""


class Pulse:
    """Felt by readiness checks and figures; costs those who give it nothing."""

    def __init__(self) -> None:
        self._turned_at: float | None = None
        self.lag = 0.0  #: seconds by which the event loop was last late

    def turned(self, clock: Clock) -> None:
        """The worker has finished a turn."""
        self._turned_at = clock.monotonic()

    def is_turning(self, clock: Clock) -> bool:
        """Whether the worker has turned lately."""
        return self._turned_at is not None and clock.monotonic() - self._turned_at < TURN_WITHIN

    async def listen(self, clock: Clock) -> None:
        """Measure the lag for as long as this runs."""
        while True:
            due = clock.monotonic() + LISTEN_EVERY
            await clock.sleep(LISTEN_EVERY)
            self.lag = max(0.0, clock.monotonic() - due)
