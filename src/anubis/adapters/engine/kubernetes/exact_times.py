"""When a unit began and ended, to the moment.

A cluster tells both in whole seconds: too coarse for who compares how long programs take. Their
recorder sees them begin and end, by the same clock: that of their node.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

BEGIN_SECONDS: Final = 2.0
"""How long the recorder's word for the begin is waited for. Then the cluster's own counts: users
shall see that a program runs, also if nobody can reach its recorder.
"""

DOUBT: Final = timedelta(seconds=2)
"""By how much the two may differ: by less than a second, and what it takes to tell. A program that
is root can write into its own journal; it shall not move its end to next year.
"""


def exact(told: datetime, seen: datetime | None) -> datetime:
    """The recorder's time for what the cluster tells, if that can be the same."""
    return seen if seen is not None and abs(seen - told) < DOUBT else told
