"""``anubis schedule``: look at schedules, pause them, fire them by hand, and remove them."""

from __future__ import annotations

from collections.abc import Sequence

import click

from anubis.bootstrap.application import Application, Schedules
from anubis.domain.schedule import Schedule, ScheduleId
from anubis.entrypoints.cli import following, options, session, terminal
from anubis.entrypoints.cli.rendering import schedules as rendering
from anubis.ports.schedule_store import ScheduleEvent, ScheduleQuery
from anubis.stages.presentation import shapes

UPCOMING = 5
"""How many of the next firings are shown."""

_LIMIT = click.IntRange(1, 10_000)
_PAGE = 500
_EVENTS = 20
_SCHEDULE = click.argument("schedule", metavar="SCHEDULE")
_SCHEDULES = click.argument("schedules", nargs=-1, required=True, metavar="SCHEDULE...")


@click.group("schedule", context_settings={"help_option_names": ["-h", "--help"]})
def schedule_command() -> None:
    """List, show, pause, resume, run or remove schedules.

    A schedule is made by 'anubis submit' of a descriptor whose info.scheduling is a cron
    expression. SCHEDULE names one: by its id, by any unique prefix of it, or by its benchmark if
    that has no other.
    """


@schedule_command.command("list")
@click.option("--limit", default=50, show_default=True, type=_LIMIT, help="How many at most.")
@click.option("--ids", is_flag=True, help="Print nothing but ids.")
@options.as_json
@click.pass_obj
def list_command(opener: session.Opener | None, limit: int, ids: bool, as_json: bool) -> None:
    """List schedules, newest first."""

    async def work(application: Application) -> None:
        found = await _newest(application.schedules, limit)
        if as_json:
            terminal.echo(shapes.line({"schedules": [shapes.schedule_shape(one) for one in found]}))
        elif ids:
            terminal.echo("".join(f"{one.id}\n" for one in found))
        else:
            now, width = application.clock.now(), terminal.width()
            terminal.echo(rendering.schedules_table(found, now, width=width))

    session.read(opener, work)


async def _newest(schedules: Schedules, limit: int) -> list[Schedule]:
    found: list[Schedule] = []
    while len(found) < limit:
        before = found[-1].id if found else None
        page = await schedules.page(ScheduleQuery(before=before, limit=min(_PAGE, limit)))
        found += page
        if len(page) < min(_PAGE, limit):
            break
    return found[:limit]


@schedule_command.command("show")
@_SCHEDULE
@options.as_json
@click.pass_obj
def show_command(opener: session.Opener | None, schedule: str, as_json: bool) -> None:
    """Show a schedule, its next firings and what happened to it."""

    async def work(application: Application) -> None:
        schedule_id = await application.schedules.resolve(schedule)
        await show(application, schedule_id, as_json=as_json)

    session.read(opener, work)


async def show(application: Application, schedule_id: ScheduleId, *, as_json: bool) -> None:
    """Print all about one schedule."""
    schedules = application.schedules
    found = await schedules.get(schedule_id)
    upcoming = await schedules.upcoming(schedule_id, count=UPCOMING)
    if as_json:
        terminal.echo(shapes.line(shapes.schedule_detail(found, upcoming)))
        return
    events = await _last_events(schedules, schedule_id)
    now, width = application.clock.now(), terminal.width()
    terminal.echo(rendering.card(found, upcoming, events, now, width))


async def _last_events(schedules: Schedules, schedule_id: ScheduleId) -> list[ScheduleEvent]:
    events: list[ScheduleEvent] = []
    after = 0
    while page := await schedules.events(schedule_id, after=after, limit=1000):
        events = [*events, *page][-_EVENTS:]
        after = page[-1].number
    return events


@schedule_command.command("pause")
@_SCHEDULES
@options.as_json
@click.pass_obj
def pause_command(opener: session.Opener | None, schedules: Sequence[str], as_json: bool) -> None:
    """Let schedules fire nothing until they are resumed.

    Firings that are due meanwhile are dropped. Runs that are under way go on.
    """

    async def work(application: Application) -> None:
        for schedule_id in await _found(application, schedules):
            paused = await application.schedules.pause(schedule_id, by=session.person())
            _report(paused, "paused", as_json=as_json)

    session.call(opener, work)


@schedule_command.command("resume")
@_SCHEDULES
@options.as_json
@click.pass_obj
def resume_command(opener: session.Opener | None, schedules: Sequence[str], as_json: bool) -> None:
    """Let schedules fire again, from now on."""

    async def work(application: Application) -> None:
        for schedule_id in await _found(application, schedules):
            resumed = await application.schedules.resume(schedule_id, by=session.person())
            _report(resumed, "resumed", as_json=as_json)

    session.call(opener, work)


def _report(schedule: Schedule, done: str, *, as_json: bool) -> None:
    if as_json:
        terminal.echo(shapes.line(shapes.schedule_shape(schedule)))
        return
    [when, *_] = [*rendering.moments(schedule, [schedule.next_at] if schedule.next_at else []), ""]
    terminal.echo(f"{schedule.id} {done}{f', fires next at {when}' if when else ''}\n")


@schedule_command.command("run")
@_SCHEDULE
@click.option("--watch", is_flag=True, help="Then follow the run until it ends.")
@options.as_json
@click.pass_obj
def run_command(opener: session.Opener | None, schedule: str, watch: bool, as_json: bool) -> int:
    """Submit a run of a schedule now, and print its id.

    The run is one more of the schedule's family. A paused schedule can be run, and a run of it
    that has not ended keeps nobody from asking for another.
    """

    async def work(application: Application) -> int:
        schedule_id = await application.schedules.resolve(schedule)
        run = await application.schedules.run_now(schedule_id, by=session.person())
        shape = shapes.run_shape(run, application.clock.now())
        terminal.echo(shapes.line(shape) if as_json else f"{run.id}\n")
        if watch:
            return await following.to_the_end(application, run.id, as_json=as_json)
        return 0

    return session.call(opener, work)


@schedule_command.command("remove")
@_SCHEDULES
@click.pass_obj
def remove_command(opener: session.Opener | None, schedules: Sequence[str]) -> None:
    """Forget schedules for good.

    Their runs stay, and those under way go on.
    """

    async def work(application: Application) -> None:
        for schedule_id in await _found(application, schedules):
            await application.schedules.remove(schedule_id, by=session.person())
            terminal.echo(f"{schedule_id} removed\n")

    session.call(opener, work)


async def _found(application: Application, names: Sequence[str]) -> list[ScheduleId]:
    """Each schedule meant, once, before anything is done."""
    return list(dict.fromkeys([await application.schedules.resolve(name) for name in names]))
