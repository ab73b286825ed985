"""NVIDIA GPUs of this machine, through NVML. No driver or no library means no GPUs, not an error.

Read by the engine, not by the shims: the library is large and its start costs tens of
milliseconds. Values are written beside the run, so that every observer sees the same ones.
"""

from __future__ import annotations

import contextlib
import importlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from anubis.domain.observation import GpuReading, ResourceReading

DRIVER = Path("/proc/driver/nvidia/version")
FILE = "gpus"
FRESH = timedelta(seconds=2)
"""A reading older than this was made while nobody looked at the GPUs."""


def load_nvml() -> Any:
    """The NVML module, started; None if there is no driver, library or working GPU."""
    if not DRIVER.exists():
        return None
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:  # the extra anubis[nvidia] is not installed
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml


class Gpus:
    """The GPUs of this machine. Every method may block for some milliseconds."""

    def __init__(self, load: Callable[[], Any] = load_nvml) -> None:
        self._load = load
        self._is_loaded = False
        self._nvml: Any = None

    def _handles(self) -> list[Any]:
        if not self._is_loaded:
            self._nvml = self._load()
            self._is_loaded = True
        if self._nvml is None:
            return []
        nvml = self._nvml
        try:
            return [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        except nvml.NVMLError:
            return []

    @property
    def may_exist(self) -> bool:
        """Whether asking is worth a thread. False once we know that there are none."""
        return self._nvml is not None if self._is_loaded else DRIVER.exists()

    def count(self) -> int:
        """How many there are."""
        return len(self._handles())

    def describe(self) -> list[dict[str, object]]:
        """Name, memory and driver of each, for the fingerprint."""
        described = []
        for handle in self._handles():
            with contextlib.suppress(self._nvml.NVMLError):
                described.append(
                    {
                        "name": _text(self._nvml.nvmlDeviceGetName(handle)),
                        "memory_bytes": int(self._nvml.nvmlDeviceGetMemoryInfo(handle).total),
                        "driver": _text(self._nvml.nvmlSystemGetDriverVersion()),
                    }
                )
        return described

    def read(self) -> tuple[GpuReading, ...]:
        """What each does now. One that does not answer is left out."""
        readings = []
        for index, handle in enumerate(self._handles()):
            with contextlib.suppress(self._nvml.NVMLError):
                readings.append(
                    GpuReading(
                        index=index,
                        utilisation=self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
                        memory_bytes=int(self._nvml.nvmlDeviceGetMemoryInfo(handle).used),
                        power_watts=self._power(handle),
                    )
                )
        return tuple(readings)

    def _power(self, handle: Any) -> float | None:
        try:
            return float(self._nvml.nvmlDeviceGetPowerUsage(handle)) / 1000
        except self._nvml.NVMLError:
            return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


class GpuBook:
    """The GPU values of one run, by the time of the resource reading they belong to."""

    def __init__(self, directory: Path, gpus: Gpus) -> None:
        self._path = directory / FILE
        self._gpus = gpus
        self._known = self._read()

    def _read(self) -> dict[datetime, tuple[GpuReading, ...]]:
        known = {}
        with contextlib.suppress(FileNotFoundError):
            for line in self._path.read_text().splitlines():
                with contextlib.suppress(ValueError):  # a torn last line
                    at, readings = json.loads(line)
                    known[datetime.fromisoformat(at)] = tuple(GpuReading(**r) for r in readings)
        return known

    def values_for(self, reading: ResourceReading) -> tuple[GpuReading, ...]:
        """What was noted then; what is true now, if then is now. May block."""
        known = self._known.get(reading.at)
        if known is not None or datetime.now(UTC) - reading.at > FRESH:
            return known or ()
        values = self._known[reading.at] = self._gpus.read()
        fields = ("index", "utilisation", "memory_bytes", "power_watts")
        plain = [{name: getattr(value, name) for name in fields} for value in values]
        with contextlib.suppress(OSError), self._path.open("a") as file:
            file.write(json.dumps([reading.at.isoformat(), plain]) + "\n")
        return values
