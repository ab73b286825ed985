"""``anubis status``: where a run stands."""

from __future__ import annotations

import click

from anubis.bootstrap.application import Application
from anubis.entrypoints.cli import naming, options, session, showing


@click.command("status")
@options.run_argument
@options.as_json
@click.pass_obj
def status_command(opener: session.Opener | None, run: str, as_json: bool) -> None:
    """Show where a run stands and what happened to it."""

    async def work(application: Application) -> None:
        found = await application.store.get(await naming.run_of(application, run))
        await showing.status(application, found, as_json=as_json)

    session.read(opener, work)
