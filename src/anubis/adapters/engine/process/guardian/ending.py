"""How a run ended, written so that it survives a power cut."""

from __future__ import annotations

import json
import time

from anubis.adapters.engine.process.guardian import files

EXITED, CANCELED, TIMED_OUT = "exited", "canceled", "timed_out"
OUTPUT_LIMIT, NOT_STARTED, LOST = "output_limit", "not_started", "lost"
OUT_OF_MEMORY, DISMISSED = "out_of_memory", "dismissed"
"""The spellings of ``EndCause``; a test keeps them equal."""


class Ending:
    """All that is told about the end of a unit."""

    __slots__ = (
        "cause",
        "cpu_seconds",
        "exit_code",
        "left_behind",
        "message",
        "peak_memory_bytes",
        "signal",
        "unit",
    )

    def __init__(self, unit: str, cause: str, message: str = "") -> None:
        self.unit = unit
        self.cause = cause
        self.message = message
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.left_behind = 0
        self.cpu_seconds = 0.0
        self.peak_memory_bytes = 0

    def exited_with(self, status: int) -> None:
        """Take over what the kernel says in a wait status."""
        if status & 0x7F:
            self.signal = status & 0x7F
        else:
            self.exit_code = status >> 8

    def write(self, directory: str) -> None:
        """Make it the run's final status."""
        content: dict[str, object] = {name: getattr(self, name) for name in self.__slots__}
        content["ended_ns"] = time.time_ns()
        files.write_durably(directory, files.STATUS, json.dumps(content).encode(), sync=True)
