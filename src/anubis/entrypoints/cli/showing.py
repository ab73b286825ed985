"""What several commands show of a run: its results, or its status."""

from __future__ import annotations

from anubis.bootstrap.application import Application
from anubis.domain.event import EventKind
from anubis.domain.run import Run
from anubis.entrypoints.cli import terminal
from anubis.entrypoints.cli.rendering import cards, environments
from anubis.ports.log_store import LogQuery
from anubis.stages.presentation import shapes

_MANY_EVENTS = 10_000


async def results(application: Application, run: Run, *, as_json: bool, lines: int = 0) -> None:
    """Print how a run ended, what it measured, and so many lines from the end of its output."""
    if as_json:
        await _as_json(application, run)
        return
    summaries = await application.store.summaries(run.id)
    events = await application.store.events(run.id, limit=_MANY_EVENTS)
    warnings = [event for event in events if event.kind is EventKind.WARNING]
    query = LogQuery(tail=lines)
    tail = [line async for line in application.logs.lines(run.id, query)] if lines else []
    now, width = application.clock.now(), terminal.width()
    terminal.echo(cards.results(run, summaries, now, warnings, tail, width))


async def status(application: Application, run: Run, *, as_json: bool) -> None:
    """Print where a run stands and what happened to it."""
    if as_json:
        await _as_json(application, run)
        return
    events = await application.store.events(run.id, limit=_MANY_EVENTS)
    facts = environments.facts(await application.store.fingerprint(run.id))
    now, why = application.clock.now(), await application.waiting(run)
    terminal.echo(cards.status(run, events, now, facts, terminal.width(), waiting_for=why))


async def _as_json(application: Application, run: Run) -> None:
    events = await application.store.events(run.id, limit=_MANY_EVENTS)
    summaries = await application.store.summaries(run.id)
    now, why = application.clock.now(), await application.waiting(run)
    snapshot = shapes.snapshot(run, events, summaries, now, waiting_for=why)
    fingerprint = await application.store.fingerprint(run.id)
    terminal.echo(shapes.line(shapes.status_shape(snapshot, fingerprint)))
