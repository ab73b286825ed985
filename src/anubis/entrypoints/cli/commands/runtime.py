"""``anubis runtime``: the background process that other commands start. Not for people."""

from __future__ import annotations

import os

import click

from anubis.bootstrap import background
from anubis.settings import loading


@click.command("runtime", hidden=True)
def runtime_command() -> None:
    """Serve the runs of this home in the background."""
    background.main(loading.load(os.environ))
