"""Turn resource readings into samples.

Names and units, one series per unit of the run:

==================== ======= ==========================================================
``cpu_percent``      percent since the reading before; 100 is one core fully used
``memory_bytes``     bytes   resident, whole process tree
``read_bytes``       bytes   from storage, total since start
``written_bytes``    bytes   to storage, total since start
``threads``
``processes``
``gpu0_utilisation`` percent of GPU 0; likewise for the others
``gpu0_memory_bytes`` bytes
``gpu0_power_watts`` watts   where the GPU says it
==================== ======= ==========================================================

Two numbers are known at the end, for runs of any length; they have no course over time:

===================== ======= =========================================================
``cpu_seconds``       s       user and system, whole process tree
``peak_memory_bytes`` bytes   of the largest single process
===================== ======= =========================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from anubis.domain.observation import ResourceReading, UnitEnded

_SHORTEST_INTERVAL = 0.05
"""Seconds. CPU time is counted in ticks of 10 ms: over less than this it would be mostly noise."""

Measured = tuple[str, str, float]
"""Name, units and value."""


class CpuMeter:
    """Derives the CPU use of one unit from totals."""

    def __init__(self) -> None:
        self._at: datetime | None = None
        self._total = 0.0

    def started(self, at: datetime) -> None:
        """The unit began, with nothing used."""
        self._at, self._total = at, 0.0

    def percent(self, at: datetime, total: float) -> float | None:
        """CPU use since the reading before; None if there is none, or too little time passed."""
        before, used = self._at, total - self._total
        if before is not None and (at - before).total_seconds() < _SHORTEST_INTERVAL:
            return None
        self._at, self._total = at, total
        if before is None:
            return None
        # A total may shrink by a tick when a process ends while the tree is read.
        return max(0.0, 100.0 * used / (at - before).total_seconds())


def totals(ended: UnitEnded) -> Iterator[Measured]:
    """What a unit used in all, where the engine knows it."""
    if ended.cpu_seconds > 0:
        yield "cpu_seconds", "s", ended.cpu_seconds
    if ended.peak_memory_bytes > 0:
        yield "peak_memory_bytes", "bytes", float(ended.peak_memory_bytes)


def measured(reading: ResourceReading, meter: CpuMeter) -> Iterator[Measured]:
    """The samples of one reading."""
    percent = meter.percent(reading.at, reading.cpu_seconds)
    if percent is not None:
        yield "cpu_percent", "percent", percent
    yield "read_bytes", "bytes", float(reading.read_bytes)
    yield "written_bytes", "bytes", float(reading.written_bytes)
    if not reading.processes:  # the last word of a short program: only its totals mean something
        return
    yield "memory_bytes", "bytes", float(reading.memory_bytes)
    yield "threads", "", float(reading.threads)
    yield "processes", "", float(reading.processes)
    for gpu in reading.gpus:
        yield f"gpu{gpu.index}_utilisation", "percent", 100.0 * gpu.utilisation
        yield f"gpu{gpu.index}_memory_bytes", "bytes", float(gpu.memory_bytes)
        if gpu.power_watts is not None:
            yield f"gpu{gpu.index}_power_watts", "watts", gpu.power_watts
