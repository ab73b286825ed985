"""``anubis token``: who may use the service of this home, or the one that is registered."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from anubis.bootstrap.application import Tokens
from anubis.domain.access import Role, TokenId
from anubis.entrypoints.cli import options, session, terminal
from anubis.entrypoints.cli.rendering import tokens as rendering
from anubis.settings import loading, registering
from anubis.stages.presentation import access_shapes, shapes

Answer = TypeVar("Answer")

_ROLES = click.Choice([role.value for role in Role])


@click.group("token", context_settings={"help_option_names": ["-h", "--help"]})
def token_command() -> None:
    """Make, list and revoke API tokens.

    A service that others can reach requires one of everybody. Roles: a viewer looks at everything,
    a submitter also submits and cancels their own runs, an admin may do everything.

    Where a service is registered, its tokens are meant, and an admin's token is needed; with
    ANUBIS_ENDPOINT=local, those of this home.
    """


@token_command.command("create")
@click.argument("user", metavar="USER")
@click.option("--role", type=_ROLES, default="submitter", show_default=True, help="May do what.")
@click.option("--days", type=click.IntRange(1, 3650), default=90, show_default=True, help="Life.")
@click.option("--note", default="", metavar="TEXT", help="What it is for.")
@options.as_json
def create_command(user: str, role: str, days: int, note: str, as_json: bool) -> None:
    """Make a token for USER and show its secret, once.

    Only the secret goes to standard output. It is stored nowhere: who loses it makes another.
    """

    async def work(desk: Tokens) -> None:
        made = await desk.create(user, Role(role), note=note, days=days)
        if as_json:
            shape = access_shapes.token_shape(made.token, desk.clock.now())
            terminal.echo(shapes.line({"token": shape, "secret": made.secret}))
            return
        terminal.say(rendering.introduction(made.token))
        terminal.echo(f"{made.secret}\n")

    _call(work)


@token_command.command("list")
@options.as_json
def list_command(as_json: bool) -> None:
    """List all tokens, newest first, without their secrets."""

    async def work(desk: Tokens) -> None:
        found, now = await desk.all(), desk.clock.now()
        if as_json:
            listed = [access_shapes.token_shape(token, now) for token in found]
            terminal.echo(shapes.line({"tokens": listed}))
        else:
            terminal.echo(rendering.tokens_table(found, now, width=terminal.width()))

    _call(work)


@token_command.command("revoke")
@click.argument("token", metavar="TOKEN")
@options.as_json
def revoke_command(token: str, as_json: bool) -> None:
    """Revoke a token, named by its id: it opens nothing from now on."""

    async def work(desk: Tokens) -> None:
        revoked = await desk.revoke(TokenId(token))
        if as_json:
            terminal.echo(shapes.line(access_shapes.token_shape(revoked, desk.clock.now())))
        else:
            terminal.echo(f"{revoked.id} revoked\n")

    _call(work)


def _call(work: Callable[[Tokens], Awaitable[Answer]]) -> Answer:
    async def opened() -> Answer:
        async with _chosen() as desk:
            return await work(desk)

    return asyncio.run(opened())


def _chosen() -> contextlib.AbstractAsyncContextManager[Tokens]:
    # Each in its own branch and not above: neither column pays for importing the other.
    connection = registering.in_force(os.environ)
    if connection is None:
        from anubis.bootstrap import tokens

        return tokens.opened(loading.load(os.environ), by=session.person())

    from anubis.bootstrap import remote

    return remote.tokens(connection, session.person())
