"""What this machine is, and how busy it is now. Small reads of /proc and /sys."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")

Facts = dict[str, object]


def read_text(path: Path) -> str:
    """A small file's text, empty when there is none."""
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


@functools.cache
def permanent_facts() -> Facts:
    """What does not change while the machine is up."""
    names = os.uname()
    cpus = read_text(Path("/proc/cpuinfo"))
    return {
        "cpu": cpu_model(cpus) or names.machine,
        "logical_cores": os.cpu_count(),
        "physical_cores": physical_cores(cpus),
        "memory_bytes": memory_bytes("MemTotal"),
        "architecture": names.machine,
        "kernel": f"{names.sysname} {names.release}",
        "os": os_name(read_text(Path("/etc/os-release"))),
        "hostname": names.nodename,
    }


def governor() -> str | None:
    """How the kernel chooses the frequency; None when it is not ours to know (virtual machines)."""
    return read_text(_GOVERNOR) or None


def present_facts() -> Facts:
    """How busy the machine is now."""
    return {
        "load": [round(value, 2) for value in os.getloadavg()],
        "free_memory_bytes": memory_bytes("MemAvailable"),
    }


def cpu_model(cpus: str) -> str | None:
    """The name of the first CPU, as x86 and some others tell it."""
    found = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", cpus, re.MULTILINE)
    return found[1] if found else None


def physical_cores(cpus: str) -> int | None:
    """Cores without counting hardware threads; None where /proc does not tell them apart."""
    packages = re.findall(r"^physical id\s*:\s*(\d+)$", cpus, re.MULTILINE)
    cores = re.findall(r"^core id\s*:\s*(\d+)$", cpus, re.MULTILINE)
    return len(set(zip(packages, cores, strict=False))) or None


def memory_bytes(name: str) -> int | None:
    """A line of /proc/meminfo."""
    found = re.search(rf"^{name}:\s*(\d+) kB$", read_text(Path("/proc/meminfo")), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def os_name(release: str) -> str | None:
    """What the distribution calls itself."""
    found = re.search(r'^PRETTY_NAME="?([^"\n]+)"?$', release, re.MULTILINE)
    return found[1] if found else None
