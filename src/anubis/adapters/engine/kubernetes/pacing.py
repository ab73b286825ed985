"""How often the cluster is asked in all, however many units have a question.

Words are worth a call now and then, and none of the units that wait is in a hurry. If each of them
asked, hundreds that wait for the same thing would ask hundreds of times, and the API server looks
through all events of the namespace for each answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Pace:
    """Says yes at most once in so many seconds, to whoever asks first."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._next = float("-inf")

    def may(self) -> bool:
        """Whether it is somebody's turn; if so, it was theirs."""
        now = self._clock()
        if now < self._next:
            return False
        self._next = now + self._seconds
        return True
