"""What the engines have in all: declared in the settings, else detected."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping

from anubis.adapters.engine.process import machine
from anubis.adapters.engine.process.gpus import Gpus
from anubis.domain.demand import Capacity
from anubis.settings.model import Settings

_UNBOUNDED = 2**62
"""What is no reason to refuse or to wait: memory where the kernel does not tell, and everything
that a cluster has, which knows best itself."""


@functools.cache
def capacities(settings: Settings) -> Mapping[str, Capacity]:
    """By engine. Looking for GPUs may take a moment, so this is asked only where it matters."""
    here = _of_this_machine(settings)
    return {"process": here, "docker": here, "kubernetes": _of_a_cluster(settings)}


def _of_this_machine(settings: Settings) -> Capacity:
    memory = settings.memory or machine.memory_bytes("MemTotal") or _UNBOUNDED
    return Capacity(
        slots=settings.slots,
        cpus=settings.cpus or float(len(os.sched_getaffinity(0))),
        memory_bytes=memory,
        gpus=Gpus().count() if settings.gpus is None else settings.gpus,
        machine="this machine",
    )


def _of_a_cluster(settings: Settings) -> Capacity:
    return Capacity(
        slots=settings.kubernetes_slots,
        cpus=float(_UNBOUNDED),
        memory_bytes=_UNBOUNDED,
        gpus=_UNBOUNDED,
        numbers_gpus=False,
    )
