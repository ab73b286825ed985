"""The edge of the program: words come in, an exit code goes out, no error leaves as a traceback.

| code | meaning |
|---|---|
| 0 | done; for ``run``, ``watch`` and ``submit --watch``: the run succeeded |
| 1 | the benchmark failed; a dataset was damaged, or had to stay |
| 2 | bad usage or a bad descriptor |
| 3 | our fault or the environment's |
| 130 | interrupted, or the run was canceled |
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import click

from anubis.domain.errors import AnubisError, DescriptorInvalid
from anubis.entrypoints.cli import exits, lazy, terminal
from anubis.entrypoints.cli.rendering import text

DEBUG = "ANUBIS_DEBUG"
_NOT_OURS = "permission denied; has another account, such as root, worked with this home?"


def main(arguments: Sequence[str]) -> int:
    """Run one command line, in either spelling."""
    _accept_any_character()
    starts_with_flag = bool(arguments) and arguments[0].startswith("-")
    debug = os.environ.get(DEBUG) or (starts_with_flag and "--debug" in arguments)
    try:
        return _run_flags(arguments) if starts_with_flag else _run(arguments)
    except click.ClickException as error:
        return _show(error)
    except (click.Abort, KeyboardInterrupt):
        return exits.INTERRUPTED
    # The edge is the one place that catches everything: whatever a defect raises, a user gets one
    # line that says how to learn more.
    except Exception as error:
        if debug:
            raise
        return _explain(error)


def _run(arguments: Sequence[str]) -> int:
    code = lazy.group.main(list(arguments), prog_name="anubis", standalone_mode=False)
    return int(code or 0)


def _run_flags(arguments: Sequence[str]) -> int:
    """The original client's spelling, except where a flag is our own."""
    # Here and not above: most command lines start with a verb and need no translation.
    from anubis.entrypoints.cli import legacy

    if not legacy.is_legacy(arguments):
        return _run(arguments)
    for command in legacy.translate(arguments):
        if code := _run(command):
            return code
    return 0


def undelivered(error: OSError) -> int:
    """The exit code after stdout took no answer; why is said, unless its reader went away."""
    if isinstance(error, BrokenPipeError):
        terminal.forget()
        return lazy.PIPE_CLOSED
    return _explain(terminal.lost(error))


def _show(error: click.ClickException) -> int:
    page = io.StringIO()
    error.show(file=page)
    terminal.say(page.getvalue().rstrip("\n"))
    return error.exit_code


def _explain(error: BaseException) -> int:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, DescriptorInvalid):  # each line starts with a place editors can open
        for problem in error.problems:
            terminal.say(text.printable(str(problem)))
        return error.exit_code
    if isinstance(error, AnubisError):
        terminal.say(f"anubis: {error}")
        return error.exit_code
    if isinstance(error, PermissionError) and error.filename:
        terminal.say(f"anubis: {text.printable(str(error.filename))}: {_NOT_OURS}")
        return exits.UNREACHABLE
    kind = type(error).__name__
    terminal.say(f"anubis: internal error: {kind}: {error} (set {DEBUG}=1 for the traceback)")
    return exits.UNREACHABLE


def _accept_any_character() -> None:
    """Show a replacement instead of failing where the terminal's encoding lacks a character."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
