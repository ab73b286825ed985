"""How numbers of runs, CPUs, GPUs and bytes are put into words."""

from __future__ import annotations

from anubis.domain.size import spoken as size

__all__ = ["count", "cpus", "gpus", "size"]


def count(number: int, noun: str) -> str:
    """``1 run``, ``2 runs``, ``1,000 runs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def cpus(number: float) -> str:
    """``1 CPU``, ``0.5 CPUs``."""
    return f"{number:g} CPU{'' if number == 1 else 's'}"


def gpus(number: int) -> str:
    """``1 GPU``, ``no GPU``."""
    return count(number, "GPU") if number else "no GPU"
