"""Whether a home needs a runtime at all.

Apart from ``serving``, because every command asks this and must not pay for importing a worker.
"""

from __future__ import annotations

from anubis.domain.run import ACTIVE
from anubis.ports.run_reader import RunReader
from anubis.ports.schedule_store import ScheduleStore


async def has_work(runs: RunReader, schedules: ScheduleStore) -> bool:
    """Whether any run has not ended, or any schedule will fire."""
    counts = await runs.counts()
    if any(counts.get(state, 0) for state in ACTIVE):
        return True
    return await schedules.next_due() is not None
