"""``anubis watch``: follow a run."""

from __future__ import annotations

import click

from anubis.bootstrap.application import Application
from anubis.entrypoints.cli import following, options, session


@click.command("watch")
@options.run_argument
@options.as_json
@click.pass_obj
def watch_command(opener: session.Opener | None, run: str, as_json: bool) -> int:
    """Follow a run until it ends.

    With --json, one line per change. Ctrl-C stops watching; the run goes on. The exit code tells
    how the run ended.
    """

    async def work(application: Application) -> int:
        run_id = await application.store.resolve(run)
        return await following.to_the_end(application, run_id, as_json=as_json)

    return session.read(opener, work)
