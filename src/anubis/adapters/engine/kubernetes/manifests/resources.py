"""What a unit may use, and what a machine must have left for it."""

from __future__ import annotations

from typing import Final

from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.domain.plan import Unit

GPU: Final = "nvidia.com/gpu"


def of(unit: Unit) -> Manifest:
    """Limits, which are also what is kept free for it."""
    wanted = unit.resources
    limits: dict[str, str] = {}
    if wanted.cpus is not None:
        limits["cpu"] = f"{max(1, round(wanted.cpus * 1000))}m"
    if wanted.memory_bytes is not None:
        limits["memory"] = str(wanted.memory_bytes)
    if wanted.gpus:
        limits[GPU] = str(wanted.gpus)
    return {"requests": dict(limits), "limits": limits} if limits else {}
