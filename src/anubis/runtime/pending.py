"""Whether a home needs a runtime at all.

Apart from ``serving``, because every command asks this and must not pay for importing a worker.
"""

from __future__ import annotations

import os
from pathlib import Path

from anubis.domain.run import ACTIVE
from anubis.ports.run_reader import RunReader
from anubis.ports.schedule_store import ScheduleStore


async def has_work(runs: RunReader, schedules: ScheduleStore) -> bool:
    """Whether any run has not ended, or any schedule will fire."""
    counts = await runs.counts()
    if any(counts.get(state, 0) for state in ACTIVE):
        return True
    return await schedules.next_due() is not None


def has_leftovers(*engines: Path) -> bool:
    """Whether an engine keeps something of a run in its folder, though all may have ended: whoever
    was to remove that, a pod that holds a GPU perhaps, was killed.
    """
    return any(_has_folder(place) for place in engines)


def _has_folder(place: Path) -> bool:
    try:
        with os.scandir(place) as entries:
            return any(entry.is_dir() for entry in entries)
    except OSError:  # it was never used
        return False
