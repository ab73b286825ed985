"""Where answers and remarks go, and whether anybody sees colours there."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import TextIO

import click


def is_lively(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether a stream is a terminal that takes colours and moving cursors."""
    plain = environ.get("NO_COLOR") or environ.get("TERM", "") in ("", "dumb")
    return not plain and stream.isatty()


def width() -> int | None:
    """Cells in a line of the terminal that answers go to; None if they go elsewhere."""
    if not is_lively(sys.stdout, os.environ):
        return None
    return shutil.get_terminal_size().columns


def echo(text: str) -> None:
    """Print an answer, which brings its own newlines, to stdout."""
    click.echo(text, nl=False, color=is_lively(sys.stdout, os.environ))


def say(text: str) -> None:
    """Tell the person at the terminal something that is not the answer they asked for."""
    try:
        click.echo(text, err=True, color=is_lively(sys.stderr, os.environ))
    except OSError:  # nobody listens
        return
