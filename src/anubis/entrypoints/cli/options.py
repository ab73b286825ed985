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


def descriptor_argument(command: Command) -> Command:
    """FILE: a path, ``-``, or a run to repeat."""
    return click.argument("file", metavar="FILE")(command)
