"""``anubis validate``: every problem of every file, at once."""

from __future__ import annotations

from collections.abc import Sequence

import click

from anubis.domain.errors import DescriptorInvalid
from anubis.domain.problem import Problem
from anubis.entrypoints.cli import documents, exits, options, terminal
from anubis.entrypoints.cli.documents import Unreadable
from anubis.entrypoints.cli.rendering import problems
from anubis.entrypoints.cli.rendering.problems import Verdict
from anubis.stages.descriptor import parsing
from anubis.stages.presentation import shapes


@click.command("validate")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@options.as_json
def validate_command(files: Sequence[str], as_json: bool) -> int:
    """Check descriptors and explain every problem.

    Old spellings are pointed out and accepted. The exit code is 2 if any file has an error.
    """
    verdicts = [_check(name) for name in files]
    if as_json:
        terminal.echo(shapes.line({"files": [problems.shape(one) for one in verdicts]}))
    else:
        terminal.echo("".join(problems.page(one) for one in verdicts))
    return 0 if all(one.is_valid for one in verdicts) else exits.BAD_USAGE


def _check(name: str) -> Verdict:
    try:
        parsed = parsing.parse(documents.read(name))
    except DescriptorInvalid as error:
        return Verdict(file=name, is_valid=False, problems=error.problems)
    except Unreadable as error:  # cannot be read: the other files still get their answer
        return Verdict(file=name, is_valid=False, problems=(_unreadable(name, error),))
    return Verdict(file=name, is_valid=True, problems=parsed.warnings)


def _unreadable(name: str, error: Unreadable) -> Problem:
    return Problem(
        file=name,
        line=1,
        column=1,
        field="",
        found=error.found,
        expected="a descriptor",
        hint=error.hint,
    )
