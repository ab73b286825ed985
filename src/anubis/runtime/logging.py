"""What the runtime writes about itself: one line per event, to standard error.

Writing must never end anything: the disk that the log is on may be the full one that the log is
about. The log is cut at the start of a runtime, so that it does not grow for ever.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TextIO

import structlog

LARGEST_LOG = 4 * 1024**2
"""Bytes. Months of ordinary life, or a few thousand tracebacks."""


class _Forgiving:
    """A file that drops what cannot be written."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._file.flush()


def set_up(*logs: Path) -> None:
    """Make structlog write plain lines, and cut these logs if they have grown large."""
    for log in logs:
        with contextlib.suppress(OSError):
            if log.stat().st_size > LARGEST_LOG:
                os.truncate(log, 0)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer(colors=False),
        ],
        logger_factory=structlog.PrintLoggerFactory(file=_Forgiving(sys.stderr)),  # type: ignore[arg-type]  # it only writes and flushes
    )
