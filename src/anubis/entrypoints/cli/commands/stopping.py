"""``anubis cancel`` and ``anubis purge``."""

from __future__ import annotations

from collections.abc import Sequence

import click

from anubis.bootstrap.application import Application
from anubis.domain.errors import ScheduleAmbiguous, ScheduleNotFound
from anubis.domain.run import Run, RunId
from anubis.domain.schedule import ScheduleId
from anubis.entrypoints.cli import naming, options, session, terminal
from anubis.stages.presentation import shapes


@click.command("cancel")
@options.runs_argument
@click.option("--wait", is_flag=True, help="Return when the runs have ended.")
@options.as_json
@click.pass_obj
def cancel_command(
    opener: session.Opener | None, runs: Sequence[str], wait: bool, as_json: bool
) -> None:
    """Ask runs to stop.

    The program gets SIGTERM, and SIGKILL after the grace period of its descriptor. What it wrote
    and measured until then is kept. The whole id of a schedule removes that schedule.
    """

    async def work(application: Application) -> None:
        schedules = [one for one in runs if await _is_schedule(application, one)]
        for run_id in await _found(application, [one for one in runs if one not in schedules]):
            run = await application.cancel(run_id, by=session.person())
            if wait:
                run = await _ended(application, run)
            _report(application, run, as_json=as_json)
        for schedule_id in schedules:
            await application.schedules.remove(ScheduleId(schedule_id), by=session.person())
            terminal.echo(f"{schedule_id} removed\n")

    session.call(opener, work)


async def _found(application: Application, runs: Sequence[str]) -> list[RunId]:
    """Each run meant, once, before anything is done: a later name may mean another run then."""
    return list(dict.fromkeys([await naming.run_of(application, one) for one in runs]))


async def _is_schedule(application: Application, name: str) -> bool:
    """Whether a schedule has this very id: what ``submit`` gave can be canceled."""
    try:
        return await application.schedules.resolve(name) == name
    except (ScheduleNotFound, ScheduleAmbiguous):
        return False


async def _ended(application: Application, run: Run) -> Run:
    async for snapshot in application.watch(run.id):
        run = snapshot.run
    return run


def _report(application: Application, run: Run, *, as_json: bool) -> None:
    if as_json:
        terminal.echo(shapes.line(shapes.run_shape(run, application.clock.now())))
    elif run.state.is_terminal:
        terminal.echo(f"{run.id} {run.state}\n")
    else:
        terminal.echo(f"{run.id} is being canceled\n")


@click.command("purge")
@options.runs_argument
@click.pass_obj
def purge_command(opener: session.Opener | None, runs: Sequence[str]) -> None:
    """Stop runs if need be, and forget all about them.

    Descriptor, output, metrics and events are deleted for good.
    """

    async def work(application: Application) -> None:
        for run_id in await _found(application, runs):
            await application.purge(run_id, by=session.person())
            terminal.echo(f"{run_id} purged\n")

    session.call(opener, work)
