"""``anubis results``: what came out of a run."""

from __future__ import annotations

import click

from anubis.bootstrap.application import Application
from anubis.entrypoints.cli import options, session, showing


@click.command("results")
@options.run_argument
@click.option(
    "--lines",
    default=10,
    show_default=True,
    type=click.IntRange(min=0),
    help="How many lines from the end of the output to show.",
)
@options.as_json
@click.pass_obj
def results_command(opener: session.Opener | None, run: str, lines: int, as_json: bool) -> None:
    """Show the outcome, the metrics and the end of the output."""

    async def work(application: Application) -> None:
        found = await application.store.get(await application.store.resolve(run))
        await showing.results(application, found, as_json=as_json, lines=lines)

    session.read(opener, work)
