"""How numbers of runs, CPUs, GPUs and bytes are put into words."""

from __future__ import annotations

_UNITS = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def count(number: int, noun: str) -> str:
    """``1 run``, ``2 runs``, ``1,000 runs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def cpus(number: float) -> str:
    """``1 CPU``, ``0.5 CPUs``."""
    return f"{number:g} CPU{'' if number == 1 else 's'}"


def gpus(number: int) -> str:
    """``1 GPU``, ``no GPU``."""
    return count(number, "GPU") if number else "no GPU"


def size(number: int) -> str:
    """``8 GiB``; three digits, for people."""
    for unit, length in _UNITS:
        if number >= length:
            return f"{number / length:.3g} {unit}"
    return count(number, "byte")
