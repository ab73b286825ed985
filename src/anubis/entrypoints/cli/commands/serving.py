"""``anubis serve``: one process that turns a home into a service for a team."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import click

from anubis.entrypoints.cli import terminal
from anubis.settings import loading
from anubis.settings.model import Settings

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("serve")
@click.option("--host", metavar="ADDRESS", help="Listen here; 127.0.0.1 unless given.")
@click.option("--port", type=click.IntRange(0, 65535), help="8080 unless given; 0: any free one.")
@click.option("--tls-certificate", metavar="FILE", type=_FILE, help="Certificate chain, PEM.")
@click.option("--tls-key", metavar="FILE", type=_FILE, help="Its private key, PEM.")
@click.option("--require-tokens", is_flag=True, help="Require tokens on loopback too.")
def serve_command(require_tokens: bool, **given: str | int | Path | None) -> None:
    """Serve this home to a team over HTTP.

    Loopback needs no tokens. Any other address requires them: make the first with
    'anubis token create'. Commands on this machine go on to work beside the service, and runs go
    on when it is stopped.
    """
    settings = _settings(require_tokens, given)
    # Here and not above: a web server is the heaviest thing we have, and no other command needs it.
    from anubis.entrypoints.api import server

    server.run(settings, _announce)


def _settings(require_tokens: bool, given: dict[str, str | int | Path | None]) -> Settings:
    """The settings in force, with what was given on the command line."""
    chosen = {
        name: value.absolute() if isinstance(value, Path) else value
        for name, value in given.items()
        if value is not None
    }
    if require_tokens:
        chosen["requires_tokens"] = True
    return dataclasses.replace(loading.load(os.environ), **chosen)  # type: ignore[arg-type]  # click checked them


def _announce(text: str) -> None:
    terminal.echo(f"{text}\n")
    terminal.flush()
