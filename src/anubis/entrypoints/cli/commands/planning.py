"""``anubis plan``: what a run would be made of, without running it."""

from __future__ import annotations

import os

import click

from anubis.bootstrap import planning
from anubis.bootstrap.application import Application, Submission
from anubis.entrypoints.cli import documents, options, session, terminal
from anubis.entrypoints.cli.rendering import plans, text
from anubis.stages.presentation import shapes


@click.command("plan")
@options.descriptor_argument
@options.script
@options.engine
@options.as_json
@click.pass_obj
def plan_command(
    opener: session.Opener | None,
    file: str,
    script: str | None,
    engine: str | None,
    as_json: bool,
) -> None:
    """Show what a run would be made of, without running it.

    FILE is a descriptor, '-' for standard input, or a run. Shown are the programs, what they may
    use, their order, which of them decides, and what is fetched before. Values that are only known
    once the run has its place are in angle brackets. The exit code is 2 if the engine cannot do
    what the descriptor asks for, and every reason is told.
    """

    async def work(application: Application) -> None:
        found = await documents.find(application, file)
        document = await planning.with_code(found.document, script)
        planned = await application.plan(
            Submission(
                document=document,
                submitter=session.person(),
                environment=os.environ,
                engine=engine,
                wants_it_now=True,
            )
        )
        for warning in planned.warnings:
            terminal.say(text.printable(str(warning)))
        shown = shapes.line(planned.plan) if as_json else plans.page(planned.plan, terminal.width())
        terminal.echo(shown)

    session.call(opener, work)
