"""``anubis version``; without options it is answered by ``overview`` already."""

from __future__ import annotations

import platform

import click

import anubis
from anubis.entrypoints.cli import options, overview, terminal
from anubis.stages.presentation import shapes


@click.command("version")
@options.as_json
def version_command(as_json: bool) -> None:
    """Show the version."""
    if as_json:
        shape = {"version": anubis.__version__, "python": platform.python_version()}
        terminal.echo(shapes.line(shape))
    else:
        terminal.echo(overview.version_line())
