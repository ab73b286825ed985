"""``anubis register``, ``unregister`` and ``ping``: which service commands ask.

And, hidden, what the original client's flags about its endpoint and its id become.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from anubis.domain.endpoint import Endpoint
from anubis.domain.errors import NotAuthenticated, ServiceUnavailable, UserError
from anubis.entrypoints.cli import options, session, terminal
from anubis.settings import loading, original, registering
from anubis.settings.registering import Connection
from anubis.stages.presentation import shapes

if TYPE_CHECKING:
    from anubis.client import Health, Me

_ENDPOINT = "HOST:PORT"
_LONGEST_TOKEN = 4096  # characters; more is a file of something else
_NONE = "no service is registered, so commands work on this machine; 'anubis register' names one"


@click.command("register")
@click.argument("endpoint", metavar=_ENDPOINT)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Read the token from this file.",
)
def register_command(endpoint: str, token_file: Path | None) -> None:
    """Have all commands ask a service from now on.

    HOST:PORT may also be a URL such as https://bench.example. The token is that in --token-file, or
    in ANUBIS_TOKEN; if the service requires one and there is none, it is asked for. It is kept in
    the home, for nobody else to read.
    """
    place = Endpoint.parse(endpoint)
    token = place.token or _from_file(token_file) or os.environ.get(registering.TOKEN)
    try:
        me, token = _introduce(place, token)
    except ServiceUnavailable as error:
        _keep(place, token)
        terminal.say(f"registered, but for now: {error}")
        return
    _keep(place, token)
    terminal.echo(f"{place} is asked from now on; you are {me.user} ({me.role})\n")


def _introduce(place: Endpoint, token: str | None) -> tuple[Me, str | None]:
    """Who the service says we are, asking for a token if it wants one and there is none."""
    try:
        return _me(place, token), token
    except NotAuthenticated:
        if token:
            raise
        typed = _typed()
        return _me(place, typed), typed


def _me(place: Endpoint, token: str | None) -> Me:
    environ = {**os.environ, registering.TOKEN: token or ""}
    return _asked(registering.connection(str(place), environ, source=_ENDPOINT))[1]


def _typed() -> str:
    """A token from standard input, unseen if that is a terminal."""
    if sys.stdin.isatty():
        text: str = click.prompt("Token", hide_input=True, err=True)
    else:
        text = sys.stdin.readline(_LONGEST_TOKEN)
    return _checked(text, "standard input")


def _from_file(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        with path.open(encoding="utf-8") as file:
            return _checked(file.read(_LONGEST_TOKEN), str(path))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: expected a token, found bytes that are no text") from error


def _checked(text: str, source: str) -> str:
    token = text.strip()
    if not token or not token.isascii() or len(token.split()) != 1:
        found = "something else" if token else "none"
        raise UserError(f"{source}: expected a token, one word such as anb_…; found {found}")
    return token


def _keep(place: Endpoint, token: str | None) -> None:
    registering.register(loading.home(os.environ), place, token)
    if token and not place.is_encrypted and not place.is_loopback:
        terminal.say(f"{place} is not encrypted: whoever can listen on the way sees your token")


@click.command("unregister")
@click.argument("endpoint", metavar=f"[{_ENDPOINT}]", required=False)
def unregister_command(endpoint: str | None) -> None:
    """Forget a service, the current one unless named.

    The one registered before it is asked again; if there is none, commands work on this machine.
    """
    home = loading.home(os.environ)
    text = endpoint or registering.current(home)
    if text is None:
        raise UserError(_NONE)
    place = Endpoint.parse(text)
    if not registering.unregister(home, place):
        raise UserError(f"{place} is not registered")
    left = registering.current(home)
    now = "commands work on this machine now" if left is None else f"{left} is asked now"
    terminal.echo(f"{place} is forgotten; {now}\n")


@click.command("ping")
@options.as_json
def ping_command(as_json: bool) -> None:
    """Ask the service whether it is well, and as whom it sees you.

    The exit code is 3 if it does not answer or cannot do its work.
    """
    connection = registering.in_force(os.environ)
    if connection is None:
        raise UserError(_NONE)
    health, me = _asked(connection)
    if as_json:
        shape = {
            "endpoint": str(connection.endpoint),
            "version": health.version,
            "started_at": shapes.iso(health.started_at),
            "user": me.user,
            "role": me.role.value,
        }
        terminal.echo(shapes.line(shape))
        return
    who = f"you are {me.user} ({me.role})"
    terminal.echo(f"{connection.endpoint} is ready: anubis {health.version}, {who}\n")


def _asked(connection: Connection) -> tuple[Health, Me]:
    # Here and not above: 'anubis unregister' needs no HTTP.
    from anubis.bootstrap import remote

    return asyncio.run(remote.introduced(connection, session.person()))


@click.command("endpoint", hidden=True)
@click.option("--history", is_flag=True, help="All that are registered, the current one last.")
def endpoint_command(history: bool) -> None:
    """Show which service is registered."""
    lines = registering.registered(loading.home(os.environ))
    if not lines:
        raise UserError(_NONE)
    shown = [str(Endpoint.parse(line)) for line in (lines if history else lines[-1:])]
    terminal.echo("".join(f"{line}\n" for line in shown))


@click.command("client-id", hidden=True)
@click.option("--set", "chosen", metavar="TEXT", help="Set it.")
@click.option("--unset", is_flag=True, help="Go back to the default.")
def client_id_command(chosen: str | None, unset: bool) -> None:
    """Show or set the id under which the original client knows its submissions."""
    home = loading.home(os.environ)
    if chosen is not None and len(chosen.split()) != 1:
        raise UserError(f"client id: found {chosen!r}, expected one word")
    if unset or chosen is not None:
        original.set_client_id(home, chosen or "")
    host = socket.gethostname()
    terminal.echo(f"{original.client_id(home, user=session.person(), host=host)}\n")
