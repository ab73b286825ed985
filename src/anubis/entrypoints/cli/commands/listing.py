"""``anubis list`` and ``anubis history``: many runs, one line each."""

from __future__ import annotations

from collections.abc import Sequence

import click

from anubis.bootstrap.application import Application
from anubis.domain.errors import ScheduleNotFound
from anubis.domain.run import Run, RunState
from anubis.entrypoints.cli import options, session, terminal
from anubis.entrypoints.cli.moments import Moment, Written, absolute
from anubis.entrypoints.cli.rendering import listings
from anubis.ports.run_reader import RunQuery
from anubis.stages.presentation import shapes

_STATES = click.Choice([state.value for state in RunState], case_sensitive=False)
_LIMIT = click.IntRange(1, 10_000)


class Label(click.ParamType[tuple[str, str]]):
    """``key=value``."""

    name = "key=value"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split at the first equals sign."""
        key, equals, content = value.partition("=")
        if not key or not equals:
            self.fail(f"found {value!r}, expected key=value", param, ctx)
        return key, content


@click.command("list")
@click.option("--state", "states", multiple=True, type=_STATES, help="Only runs in this state.")
@click.option("--benchmark", metavar="NAME", help="Only runs of this benchmark.")
@click.option("--label", "labels", multiple=True, type=Label(), help="Only runs with this label.")
@click.option("--family", metavar="ID", help="Only runs of this family, such as a schedule's.")
@click.option("--user", metavar="NAME", help="Only runs that this user submitted.")
@click.option("--since", type=Moment(), help="Only runs submitted at this moment or later.")
@click.option("--until", type=Moment(), help="Only runs submitted before this moment.")
@click.option("--before", metavar="RUN", help="Only runs older than this one.")
@click.option("--limit", default=20, show_default=True, type=_LIMIT, help="How many at most.")
@click.option("--ids", is_flag=True, help="Print nothing but ids.")
@options.as_json
@click.pass_obj
def list_command(
    opener: session.Opener | None,
    states: Sequence[str],
    benchmark: str | None,
    labels: Sequence[tuple[str, str]],
    family: str | None,
    user: str | None,
    since: Written | None,
    until: Written | None,
    before: str | None,
    limit: int,
    ids: bool,
    as_json: bool,
) -> None:
    """List runs, newest first."""

    async def work(application: Application) -> None:
        now = application.clock.now()
        query = RunQuery(
            states=[RunState(state) for state in states],
            benchmark=benchmark,
            labels=labels,
            family=await _family(application, family),
            submitter=user,
            since=absolute(since, now),
            until=absolute(until, now),
            before=await application.store.resolve(before) if before else None,
            limit=limit,
        )
        runs = await application.store.page(query)
        await _print(application, runs, ids=ids, as_json=as_json)

    session.read(opener, work)


async def _family(application: Application, name: str | None) -> str | None:
    """The family meant: a schedule's by any of its names, else the very text."""
    if name is None:
        return None
    try:
        return await application.schedules.resolve(name)
    except ScheduleNotFound:
        return name


async def _print(
    application: Application, runs: Sequence[Run], *, ids: bool, as_json: bool
) -> None:
    if ids:
        terminal.echo("".join(f"{run.id}\n" for run in runs))
        return
    now, why = application.clock.now(), await application.waitings(runs)
    if as_json:
        shown = [shapes.run_shape(run, now, why.get(run.id, "")) for run in runs]
        terminal.echo(shapes.line({"runs": shown}))
    else:
        width, me = terminal.width(), session.person()
        terminal.echo(listings.runs_table(runs, now, why, width=width, me=me))


@click.command("history")
@click.option("--limit", default=50, show_default=True, type=_LIMIT, help="How many at most.")
@click.option("--ids", is_flag=True, help="Print nothing but ids.")
@options.as_json
@click.pass_obj
def history_command(opener: session.Opener | None, limit: int, ids: bool, as_json: bool) -> None:
    """List your submissions, oldest first.

    One line each, as the original client printed them: id, descriptor, date.
    """

    async def work(application: Application) -> None:
        runs = await _submissions(application, limit)
        if ids or as_json:
            await _print(application, runs, ids=ids, as_json=as_json)
            return
        for run in runs:
            document = await application.store.document(run.id)
            terminal.echo(listings.history_line(run, document))

    session.read(opener, work)


async def _submissions(application: Application, limit: int) -> list[Run]:
    """The newest runs of whoever sits here, oldest first."""
    name = await application.known_as(session.person())
    newest = await application.store.page(RunQuery(submitter=name, limit=limit))
    return list(newest)[::-1]
