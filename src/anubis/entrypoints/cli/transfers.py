"""Show how a transfer goes on: a line that changes on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Self

import click

from anubis.domain.dataset import Progress
from anubis.entrypoints.cli import terminal
from anubis.entrypoints.cli.rendering import datasets, text
from anubis.ports.clock import Clock

BEAT = 0.1
"""Seconds between two changes of the line."""

BETWEEN_LINES = 10.0
"""Seconds between two lines where none can be changed: few enough for a log."""

_CLEAR = "\r\x1b[2K"


class TransferView:
    """What a person sees of one transfer, on standard error. Used as a context."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._is_lively = terminal.is_lively(sys.stderr, os.environ)
        self._began = clock.monotonic()
        self._shown_at = self._began
        self._has_line = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._has_line:
            click.echo(_CLEAR, nl=False, err=True)

    def show(self, progress: Progress) -> None:
        """Show it, unless something was shown a moment ago."""
        now = self._clock.monotonic()
        if now - self._shown_at < (BEAT if self._is_lively else BETWEEN_LINES):
            return
        self._shown_at = now
        line = datasets.transfer(progress, now - self._began)
        if not self._is_lively:
            terminal.say(line)
            return
        cells = shutil.get_terminal_size().columns - 1
        click.echo(_CLEAR + text.shortened(line, cells), nl=False, err=True)
        self._has_line = True
