"""A real ``anubis serve`` in a temporary home, for benches that measure the service."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

PATIENCE = 30.0
"""Seconds for a service to start or to leave."""


@dataclasses.dataclass(slots=True)
class ServiceProcess:
    """One service. Started again under the same address, it is the same service to its clients."""

    home: Path
    port: int = 0
    process: subprocess.Popen[str] | None = None
    module: str = "anubis"  #: or what runs it

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def resident_bytes(self) -> int:
        """Memory of the service itself, without its zygote and the programs it runs."""
        assert self.process is not None
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def start(self) -> None:
        """Start it and wait until it says that it listens."""
        command = [sys.executable, "-m", self.module, "serve", "--port", str(self.port)]
        environment = {**os.environ, "ANUBIS_HOME": str(self.home)}
        with (self.home / "service.log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        for line in _lines(self.process):
            if "http://" in line:
                self.port = int(line.split("http://")[1].split()[0].rstrip("/").rpartition(":")[2])
                return
        raise RuntimeError(f"the service ended with {self.process.wait()} before it listened")

    def end(self, number: int = signal.SIGTERM) -> float:
        """Send it a signal and wait for its end; the seconds that took."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return time.monotonic() - began


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    yield from iter(process.stdout.readline, "")
