"""``anubis run`` and ``anubis submit``: hand in a benchmark, and wait for it or not."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from anubis.bootstrap.application import Application, Submission
from anubis.domain.descriptor import SINGLE_RUN
from anubis.domain.document import Document
from anubis.domain.problem import Problem
from anubis.domain.run import Run
from anubis.entrypoints.cli import (
    documents,
    exits,
    following,
    leaving_code,
    options,
    session,
    showing,
    terminal,
    views,
)
from anubis.entrypoints.cli.rendering import states, text
from anubis.stages.presentation import shapes

UPCOMING = 3
"""How many of the next firings the author of a schedule is told."""


@click.command("run")
@options.descriptor_argument
@options.script
@options.engine
@options.priority
@options.as_json
@click.pass_obj
def run_command(
    opener: session.Opener | None,
    file: str,
    script: str | None,
    engine: str | None,
    priority: int | None,
    as_json: bool,
) -> int:
    """Run a benchmark, show it live and print its results.

    FILE is a descriptor, '-' for standard input, or a run to repeat, with its code unless
    --script brings other code.

    Ctrl-C cancels the run and waits for its end; a second Ctrl-C leaves at once, while the run
    is still being canceled. Closing the terminal cancels nothing: the run goes on, and
    'anubis watch' finds it again. The exit code tells how the run ended. A schedule in the
    descriptor is passed over: the benchmark runs once, now.
    """

    async def work(application: Application) -> int:
        found = await documents.find(application, file)
        document = await leaving_code.beside(application, found.document, script)
        submission = _submission(document, engine, priority, now=True)
        return await _run(application, submission, as_json=as_json)

    return session.call(opener, work)


async def _run(application: Application, submission: Submission, *, as_json: bool) -> int:
    async with following.Interrupts() as interrupts:
        submitted = await application.submit(submission)
        _warn(submitted.warnings)
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
@options.script
@options.engine
@options.priority
@click.option("--watch", is_flag=True, help="Then follow the run until it ends.")
@click.option("--status", is_flag=True, hidden=True, help="Then show where the run stands.")
@options.as_json
@click.pass_obj
def submit_command(
    opener: session.Opener | None,
    file: str,
    script: str | None,
    engine: str | None,
    priority: int | None,
    watch: bool,
    status: bool,
    as_json: bool,
) -> int:
    """Hand in a benchmark and return at once with its id.

    FILE is a descriptor, '-' for standard input, or a run to repeat, with its code unless
    --script brings other code. Only the id goes to standard output. The run goes on without a
    service and without this terminal.

    A descriptor with a schedule is stored as one: it fires again and again, and the id is the
    schedule's. 'anubis schedule' looks after it.
    """

    async def work(application: Application) -> int:
        found = await documents.find(application, file)
        document = await leaving_code.beside(application, found.document, script)
        submission = _submission(document, engine, priority, now=found.is_repeat)
        if not found.is_repeat and _recurs(application, document):
            return await _schedule(application, submission, watch=watch, as_json=as_json)
        submitted = await application.submit(submission)
        _warn(submitted.warnings)
        run = submitted.run
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


def _submission(
    document: Document, engine: str | None, priority: int | None, *, now: bool
) -> Submission:
    return Submission(
        document=document,
        submitter=session.person(),
        environment=os.environ,
        engine=engine,
        priority=priority,
        wants_it_now=now,
    )


def _recurs(application: Application, document: Document) -> bool:
    return application.validate(document).descriptor.info.scheduling != SINGLE_RUN


async def _schedule(
    application: Application, submission: Submission, *, watch: bool, as_json: bool
) -> int:
    """Store a schedule, and tell its author when it fires."""
    # Here and not above: calendars and time zones are for schedules only.
    from anubis.entrypoints.cli.rendering import schedules

    scheduled = await application.schedules.add(submission)
    schedule = scheduled.schedule
    _warn(scheduled.warnings)
    shape = shapes.schedule_shape(schedule)
    terminal.echo(shapes.line(shape) if as_json else f"{schedule.id}\n")
    upcoming = await application.schedules.upcoming(schedule.id, count=UPCOMING)
    terminal.say(schedules.announcement(schedule, upcoming))
    if watch:
        terminal.say("--watch: a schedule has no end to wait for")
    return 0


def _warn(warnings: Sequence[Problem]) -> None:
    for warning in warnings:
        terminal.say(text.printable(str(warning)))
