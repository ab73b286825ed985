"""Arguments and options that several commands share, so that they are spelt once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from anubis.domain.demand import HIGHEST_PRIORITY, LOWEST_PRIORITY

Command = TypeVar("Command", bound=Callable[..., Any])


def run_argument(command: Command) -> Command:
    """RUN, or the last run when it is missing."""
    return click.argument("run", default="last", metavar="[RUN]")(command)


def runs_argument(command: Command) -> Command:
    """RUN..., at least one, for commands that must not guess."""
    return click.argument("runs", nargs=-1, required=True, metavar="RUN...")(command)


def as_json(command: Command) -> Command:
    """--json, for programs that read us."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def engine(command: Command) -> Command:
    """--engine, stronger than the descriptor."""
    text = "Run on this engine, whatever the descriptor says."
    return click.option("--engine", metavar="NAME", help=text)(command)


def priority(command: Command) -> Command:
    """--priority, stronger than the descriptor."""
    text = "Leave the queue before runs with a lower number, whatever the descriptor says."
    kind = click.IntRange(LOWEST_PRIORITY, HIGHEST_PRIORITY)
    return click.option("--priority", metavar="N", type=kind, help=text)(command)


def script(command: Command) -> Command:
    """--script, code for the run. Once: click would take the last of several without a word."""
    text = "Submit this file or folder of code too; the run finds it in $BAI_SCRIPTS_PATH."
    option = click.option("--script", metavar="PATH", multiple=True, callback=_once, help=text)
    return option(command)


def _once(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> str | None:
    if len(values) > 1:
        text = "give it once; several files are submitted as one folder"
        raise click.BadParameter(text, context, option)
    return values[0] if values else None


def descriptor_argument(command: Command) -> Command:
    """FILE: a path, ``-``, or a run to repeat."""
    return click.argument("file", metavar="FILE")(command)
