"""Where answers and remarks go, and whether anybody sees colours there."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import TextIO

import click

from anubis.domain.errors import PermanentError
from anubis.entrypoints.cli.rendering import text as wording

_STDOUT, _STDERR = 1, 2


class OutputLost(PermanentError):
    """The answer could not be written to where stdout leads."""


def is_lively(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether a stream is a terminal that takes colours and moving cursors."""
    plain = environ.get("NO_COLOR") or environ.get("TERM", "") in ("", "dumb")
    return not plain and stream.isatty()


def width() -> int | None:
    """Cells in a line of the terminal that answers go to; None if they go elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def echo(text: str) -> None:
    """Print an answer, which brings its own newlines, to stdout."""
    with delivering():
        click.echo(text, nl=False, color=is_lively(sys.stdout, os.environ))


def write(content: bytes) -> None:
    """Give out bytes exactly as they are, now."""
    with delivering():
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def flush() -> None:
    """Have everything printed so far arrive."""
    with delivering():
        sys.stdout.flush()


@contextlib.contextmanager
def delivering() -> Iterator[None]:
    """Raise OutputLost if stdout takes nothing; a reader that went away is no error of ours."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise lost(error) from error


def lost(error: OSError) -> OutputLost:
    """Give up on stdout, and the error that says why."""
    forget(_STDOUT)
    return OutputLost(f"the output could not be written: {error.strerror}")


def say(text: str) -> None:
    """Tell the person at the terminal something that is not the answer they asked for.

    It may quote names of files and what programs wrote, so nothing in it reaches the terminal as
    a command.
    """
    safe = "\n".join(map(wording.printable, text.split("\n")))
    try:
        click.echo(safe, err=True, color=is_lively(sys.stderr, os.environ))
    except OSError:  # nobody listens there, which must not change how we exit
        forget(_STDERR)


def forget(descriptor: int = _STDOUT) -> None:
    """Point a stream at nothing, so that the interpreter's last flush of it stays quiet."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)
