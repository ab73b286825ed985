"""GPUs are read through NVML, and a machine without them is nothing special."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from anubis.adapters.engine.process.gpus import GpuBook, Gpus
from anubis.domain.observation import GpuReading, ResourceReading


class NvmlError(Exception):
    pass


class Nvml:
    """Two GPUs; the second does not tell its power."""

    NVMLError = NvmlError

    def __init__(self) -> None:
        self.used = 1000

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802 (NVML's own name, as all below)
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> bytes | str:  # noqa: N802
        return b"Old" if handle else "New"

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "550.1"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(total=5000, used=self.used + handle)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=50)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        if handle:
            raise NvmlError("not supported")
        return 70500


def a_reading(age: timedelta = timedelta()) -> ResourceReading:
    return ResourceReading(
        unit="benchmark",
        at=datetime.now(UTC) - age,
        cpu_seconds=0,
        memory_bytes=0,
        read_bytes=0,
        written_bytes=0,
        threads=1,
        processes=1,
    )


def test_each_gpu_is_described_and_read() -> None:
    gpus = Gpus(Nvml)
    assert gpus.read() == (
        GpuReading(index=0, utilisation=0.5, memory_bytes=1000, power_watts=70.5),
        GpuReading(index=1, utilisation=0.5, memory_bytes=1001, power_watts=None),
    )
    assert [gpu["name"] for gpu in gpus.describe()] == ["New", "Old"]
    assert gpus.may_exist


def test_without_nvml_there_are_no_gpus() -> None:
    gpus = Gpus(lambda: None)
    assert gpus.read() == ()
    assert gpus.describe() == []
    assert not gpus.may_exist


def test_all_observers_see_the_values_that_the_first_one_noted(tmp_path: Path) -> None:
    nvml = Nvml()
    reading = a_reading()
    first = GpuBook(tmp_path, Gpus(lambda: nvml)).values_for(reading)
    nvml.used = 4000
    later = GpuBook(tmp_path, Gpus(lambda: nvml)).values_for(reading)
    assert first == later
    assert first[0].memory_bytes == 1000


def test_a_reading_from_before_we_looked_gets_no_values_of_today(tmp_path: Path) -> None:
    book = GpuBook(tmp_path, Gpus(Nvml))
    assert book.values_for(a_reading(age=timedelta(seconds=30))) == ()
    assert book.values_for(dataclasses.replace(a_reading(), unit="other")) != ()
