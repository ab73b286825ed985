"""``anubis run`` and ``anubis submit``: hand in a benchmark, and wait for it or not."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from anubis.bootstrap.application import Application, Submission, Submitted
from anubis.domain.problem import Problem
from anubis.domain.run import Run
from anubis.entrypoints.cli import (
    documents,
    exits,
    following,
    options,
    session,
    showing,
    terminal,
    views,
)
from anubis.entrypoints.cli.rendering import states, text
from anubis.stages.presentation import shapes


@click.command("run")
@options.descriptor_argument
@options.engine
@options.as_json
@click.pass_obj
def run_command(opener: session.Opener | None, file: str, engine: str | None, as_json: bool) -> int:
    """Run a benchmark, show it live and print its results.

    FILE is a descriptor, '-' for standard input, or a run to repeat.

    Ctrl-C cancels the run and waits for its end; a second Ctrl-C leaves at once, while the run
    is still being canceled. Closing the terminal cancels nothing: the run goes on, and
    'anubis watch' finds it again. The exit code tells how the run ended. A schedule in the
    descriptor is passed over: the benchmark runs once, now.
    """
    return session.call(opener, lambda app: _run(app, file, engine, as_json=as_json))


async def _run(application: Application, file: str, engine: str | None, *, as_json: bool) -> int:
    async with following.Interrupts() as interrupts:
        submitted = await _submit(application, file, engine, now=True)
        run = submitted.run
        view = views.SilentView() if as_json else views.choose("Ctrl-C cancels the run")
        react = following.canceling(application, run.id, view)
        with view:
            ended = await following.follow(application, run.id, view, interrupts, react)
    if ended is None:
        terminal.say(f"left; the run is still being canceled: anubis status {states.short(run.id)}")
        return exits.INTERRUPTED
    await showing.results(application, ended, as_json=as_json)
    return exits.of(ended.state)


@click.command("submit")
@options.descriptor_argument
@options.engine
@click.option("--watch", is_flag=True, help="Then follow the run until it ends.")
@click.option("--status", is_flag=True, hidden=True, help="Then show where the run stands.")
@options.as_json
@click.pass_obj
def submit_command(
    opener: session.Opener | None,
    file: str,
    engine: str | None,
    watch: bool,
    status: bool,
    as_json: bool,
) -> int:
    """Hand in a benchmark and return at once with its id.

    FILE is a descriptor, '-' for standard input, or a run to repeat. Only the id goes to
    standard output. The run goes on without a service and without this terminal.
    """

    async def work(application: Application) -> int:
        run = (await _submit(application, file, engine)).run
        terminal.echo(_receipt(run, application, as_json=as_json))
        if watch:
            return await following.to_the_end(application, run.id, as_json=as_json)
        if status:
            await showing.status(application, run, as_json=as_json)
        return 0

    return session.call(opener, work)


def _receipt(run: Run, application: Application, *, as_json: bool) -> str:
    if as_json:
        return shapes.line(shapes.run_shape(run, application.clock.now()))
    return f"{run.id}\n"


async def _submit(
    application: Application, file: str, engine: str | None, *, now: bool = False
) -> Submitted:
    document = await documents.find(application, file)
    submission = Submission(
        document=document,
        submitter=session.person(),
        environment=os.environ,
        engine=engine,
        wants_it_now=now,
    )
    submitted = await application.submit(submission)
    _warn(submitted.warnings)
    return submitted


def _warn(warnings: Sequence[Problem]) -> None:
    for warning in warnings:
        terminal.say(text.printable(str(warning)))
