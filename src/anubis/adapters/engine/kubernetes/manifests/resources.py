"""What a unit may use, and what a machine must have left for it."""

from __future__ import annotations

from typing import Final

from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.domain.plan import Unit

GPU: Final = "nvidia.com/gpu"


def of(unit: Unit) -> Manifest:
    """Limits, which are also kept free for it, and what is kept free without a limit."""
    wanted = unit.resources
    limits = _amounts(wanted.cpus, wanted.memory_bytes)
    if wanted.gpus:
        limits[GPU] = str(wanted.gpus)
    requests = _amounts(wanted.requested_cpus, wanted.requested_memory_bytes) | limits
    amounts = {"requests": requests, "limits": limits}
    return {name: amount for name, amount in amounts.items() if amount}


def _amounts(cpus: float | None, memory_bytes: int | None) -> dict[str, str]:
    amounts = {}
    if cpus is not None:
        amounts["cpu"] = f"{max(1, round(cpus * 1000))}m"
    if memory_bytes is not None:
        amounts["memory"] = str(memory_bytes)
    return amounts
