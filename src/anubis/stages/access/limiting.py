"""How often somebody may ask: a bucket each, filled at a steady rate, emptied by requests."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict

from anubis.domain.errors import TooMuch
from anubis.ports.clock import Clock

MOST_BUCKETS = 10_000
"""Those not used for longest are forgotten, which fills them: memory stays bounded whoever asks."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """What a bucket holds and gets."""

    per_second: float
    burst: int  #: how many may come at once after a pause


@dataclasses.dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Limiter:
    """Buckets by name: a token's id, or an address."""

    def __init__(self, rate: Rate, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, name: str) -> None:
        """Take one from a bucket. Raises TooMuch, with the time to wait, if it is empty."""
        bucket = self._filled(name)
        if bucket.left < 1:
            wait = (1 - bucket.left) / self._rate.per_second
            text = (
                f"too many requests: expected at most {self._rate.per_second:g} a second, "
                f"and {self._rate.burst} at once"
            )
            raise TooMuch(text, retry_after=wait)
        bucket.left -= 1

    def _filled(self, name: str) -> _Bucket:
        now = self._clock.monotonic()
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = _Bucket(left=self._rate.burst, at=now)
            if len(self._buckets) > MOST_BUCKETS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(name)
        gained = (now - bucket.at) * self._rate.per_second
        bucket.left, bucket.at = min(self._rate.burst, bucket.left + gained), now
        return bucket
