"""Whether this machine is a quiet and truthful place to measure on."""

from __future__ import annotations

import collections
import shutil
from pathlib import Path

from anubis.entrypoints.cli.checks.finding import Finding, bad, doubtful, good

_KERNEL = Path("/sys/devices/system")
_OLDEST_PYTHON = (3, 11)
_BUSY = 0.5
"""Share of the CPUs that other programs may use before measurements suffer."""


def python(version: tuple[int, int, int]) -> Finding:
    """The interpreter that runs us."""
    text = ".".join(map(str, version))
    if version[:2] < _OLDEST_PYTHON:
        return bad("python", text, "install Python 3.11 or newer and set Anubis up with it")
    return good("python", text)


def governor(kernel: Path = _KERNEL) -> Finding:
    """CPUs that change their frequency make times that cannot be compared."""
    counts = collections.Counter(
        path.read_text().strip()
        for path in sorted(kernel.glob("cpu/cpu[0-9]*/cpufreq/scaling_governor"))
    )
    if not counts:
        return good("cpu governor", "not adjustable here (virtual machine or container)")
    found = ", ".join(f"{name} on {count} CPUs" for name, count in counts.most_common())
    if set(counts) == {"performance"}:
        return good("cpu governor", found)
    advice = "for steady timings: sudo cpupower frequency-set -g performance"
    return doubtful("cpu governor", found, advice)


def load(average: float, cpus: int) -> Finding:
    """Other programs share the CPUs with whatever is measured."""
    found = f"{average:.2f} on {cpus} CPUs"
    if average > _BUSY * cpus:
        return doubtful("load", found, "other programs are busy; measure when the machine is quiet")
    return good("load", found)


def clock(now: float, kernel: Path = _KERNEL) -> Finding:
    """Time stamps need a clock that is right, timings one that is quick to read."""
    path = kernel / "clocksource/clocksource0/current_clocksource"
    source = path.read_text().strip() if path.exists() else "unknown"
    if now < _RELEASED:
        return bad("clock", "set to a time before this version was made", "set the system's clock")
    if source in _SLOW_CLOCKS:
        advice = "reading it is slow; see 'clocksource=' in the kernel's documentation"
        return doubtful("clock", f"source {source}", advice)
    return good("clock", f"source {source}")


_RELEASED = 1_735_689_600.0  # 2025-01-01: older than any version of this program
_SLOW_CLOCKS = frozenset({"hpet", "acpi_pm", "jiffies", "pit"})


def git() -> Finding:
    """The commit of the code under test is part of a run's fingerprint."""
    path = shutil.which("git")
    if path is None:
        return doubtful("git", "not found", "install git, so that runs remember their commit")
    return good("git", path)


def gpus(driver: Path = Path("/proc/driver/nvidia/version")) -> Finding:
    """GPUs are sampled through NVML, where there are any."""
    try:
        import pynvml
    except ImportError:
        if not driver.exists():
            return good("gpus", "none")
        advice = "to measure them: pip install 'anubis[nvidia]'"
        return doubtful("gpus", "an NVIDIA driver, but no library to ask it", advice)
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        if not driver.exists():
            return good("gpus", "none")
        return doubtful("gpus", f"NVML says: {error}", "see whether nvidia-smi works")
    return good("gpus", f"{count} NVIDIA")
