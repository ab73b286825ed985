"""When to ask again: at growing intervals, never in step with others, and not for ever."""

from __future__ import annotations

import dataclasses
import random
from datetime import timedelta

from anubis.ports.clock import Clock


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """How patiently a service that does not answer is asked again."""

    first: timedelta = timedelta(milliseconds=100)
    """Before the second attempt. A service that is restarted by its supervisor is often back by
    then."""

    longest: timedelta = timedelta(seconds=2)
    """Between two attempts, however many there were."""

    patience: timedelta = timedelta(seconds=5)
    """From the first failure until we give up: what a person waits for a command without doubting
    it."""


ONE_CALL = Policy()
"""For calls that give one answer."""

ESTABLISHED = Policy(longest=timedelta(seconds=5), patience=timedelta(minutes=10))
"""For a watch that was under way: a run outlives its service, and so does who follows it. Ten
minutes are enough to put a new version in place."""

_CHANCE = random.SystemRandom()


class BackOff:
    """The pauses after one failure and those that follow it."""

    def __init__(self, policy: Policy, clock: Clock) -> None:
        self._policy = policy
        self._clock = clock
        self._next = policy.first.total_seconds()
        self._gives_up = clock.monotonic() + policy.patience.total_seconds()

    async def rest(self, at_least: float = 0.0) -> bool:
        """Wait for the next attempt; False, without waiting, if there should be none.

        ``at_least`` is how long the service asked us to wait, in seconds.
        """
        # Half of the pause is left to chance, so that a thousand clients of a service that comes
        # back do not all knock at once.
        pause = max(self._next * _CHANCE.uniform(0.5, 1.0), at_least)
        if self._clock.monotonic() + pause > self._gives_up:
            return False
        self._next = min(self._next * 2, self._policy.longest.total_seconds())
        await self._clock.sleep(pause)
        return True
