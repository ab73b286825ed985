"""What several commands show of a run: its results, its status, or its life to the end."""

from __future__ import annotations

from anubis.bootstrap.application import Application
from anubis.domain.run import Run, RunId
from anubis.entrypoints.cli import exits, following, terminal, views
from anubis.entrypoints.cli.rendering import cards, shapes, states
from anubis.ports.log_store import LogQuery

_MANY_EVENTS = 10_000


async def results(application: Application, run: Run, *, as_json: bool, lines: int = 0) -> None:
    """Print how a run ended, what it measured, and so many lines from the end of its output."""
    if as_json:
        await _as_json(application, run)
        return
    summaries = await application.store.summaries(run.id)
    query = LogQuery(tail=lines)
    tail = [line async for line in application.logs.lines(run.id, query)] if lines else []
    terminal.echo(cards.results(run, summaries, application.clock.now(), tail))


async def status(application: Application, run: Run, *, as_json: bool) -> None:
    """Print where a run stands and what happened to it."""
    if as_json:
        await _as_json(application, run)
        return
    events = await application.store.events(run.id, limit=_MANY_EVENTS)
    terminal.echo(cards.status(run, events, application.clock.now()))


async def to_the_end(application: Application, run_id: RunId, *, as_json: bool) -> int:
    """Follow a run, print its results, and give the exit code that tells how it ended."""
    hint = "Ctrl-C stops watching; the run goes on"
    view = views.JsonView() if as_json else views.choose(hint)
    async with following.Interrupts() as interrupts:
        with view:
            ended = await following.follow(application, run_id, view, interrupts, following.leave)
    if ended is None:
        terminal.say(f"the run goes on: anubis watch {states.short(run_id)}")
        return exits.INTERRUPTED
    if not as_json:
        await results(application, ended, as_json=False)
    return exits.of(ended.state)


async def _as_json(application: Application, run: Run) -> None:
    events = await application.store.events(run.id, limit=_MANY_EVENTS)
    summaries = await application.store.summaries(run.id)
    shape = shapes.snapshot(run, events, summaries, application.clock.now())
    terminal.echo(shapes.line(shape))
