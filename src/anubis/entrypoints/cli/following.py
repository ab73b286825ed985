"""Follow a run and show it, until it ends or the person at the terminal has seen enough."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Self

from anubis.bootstrap.application import Application
from anubis.domain.errors import NotPossible, ServiceUnavailable, TemporaryError
from anubis.domain.run import BEFORE_START, Run, RunId
from anubis.entrypoints.cli import exits, session, showing, terminal, views
from anubis.entrypoints.cli.rendering import output, states
from anubis.entrypoints.cli.views import View
from anubis.ports.clock import Clock
from anubis.ports.log_store import LogQuery
from anubis.stages.presentation.watching import Snapshot

Reaction = Callable[[], Awaitable[bool]]
"""What a Ctrl-C does; True: stop following."""

LONGEST_LOOK = 1.0
"""Seconds for the line below the metrics, between two redraws: without it they go on."""

LONGEST_OUTAGE = 600.0
"""Seconds without a service that was there: enough to put a new version of it in place."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Ctrl-C and SIGTERM, as something to be waited for, instead of dying with a hidden cursor.

    A context: signals that arrive anywhere inside it are kept until somebody asks.
    """

    def __init__(self) -> None:
        self._queue: asyncio.Queue[None] = asyncio.Queue()
        self.next = asyncio.ensure_future(self._queue.get())

    async def __aenter__(self) -> Self:
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._queue.put_nowait, None)
        return self

    async def __aexit__(self, *exception: object) -> None:
        for number in _SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)
        await _drop(self.next)

    def take(self) -> bool:
        """Whether one arrived since the last call."""
        if not self.next.done():
            return False
        self.next = asyncio.ensure_future(self._queue.get())
        return True


class Outage:
    """A service that was there and is away: borne for a while, and told once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._has_answered = False
        self._since: float | None = None

    @contextlib.asynccontextmanager
    async def borne(self) -> AsyncIterator[None]:
        """Try something; that the service does not answer is no error unless it never did, or
        has not for too long.
        """
        try:
            yield
        except ServiceUnavailable:
            now = self._clock.monotonic()
            if not self._has_answered:
                raise
            if self._since is None:
                self._since = now
                terminal.say("the service went away; trying again, the run goes on")
            elif now - self._since > LONGEST_OUTAGE:
                raise
        else:
            if self._since is not None:
                terminal.say("the service answers again")
            self._has_answered, self._since = True, None


async def follow(
    application: Application, run_id: RunId, view: View, interrupts: Interrupts, react: Reaction
) -> Run | None:
    """Show the run until it ends, and give it as it ended; None if we left before."""
    run: Run | None = None
    # Closed here: whatever ends the showing, a stream must not outlive the event loop.
    async with contextlib.aclosing(application.watch(run_id)) as snapshots:
        upcoming = _next(snapshots)
        try:
            while True:
                waiting: set[asyncio.Future[Any]] = {upcoming, interrupts.next}
                await asyncio.wait(waiting, timeout=view.beat, return_when=asyncio.FIRST_COMPLETED)
                if interrupts.take() and await react():
                    return None
                if not upcoming.done():
                    await _tick(application, run_id, view, run)
                    continue
                snapshot = upcoming.result()
                if snapshot is None:
                    return run
                run = snapshot.run
                view.show(snapshot, application.clock.now())
                upcoming = _next(snapshots)
        finally:
            await _drop(upcoming)


async def _drop(task: asyncio.Future[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _next(snapshots: AsyncIterator[Snapshot]) -> asyncio.Future[Snapshot | None]:
    return asyncio.ensure_future(anext(snapshots, None))


async def _tick(application: Application, run_id: RunId, view: View, run: Run | None) -> None:
    if view.beat is None:
        return
    line = ""
    # A service that is away must keep neither the time on the screen from moving, nor Ctrl-C.
    with contextlib.suppress(TemporaryError, TimeoutError):
        async with asyncio.timeout(LONGEST_LOOK):
            line = await _remark(application, run_id, run)
    view.tick(line, application.clock.now())


async def _remark(application: Application, run_id: RunId, run: Run | None) -> str:
    if run is not None and run.state in BEFORE_START:
        return await application.waiting(run)
    return await newest_line(application, run_id)


async def newest_line(application: Application, run_id: RunId) -> str:
    """The last line of output so far, as text."""
    newest = ""
    async for line in application.logs.lines(run_id, LogQuery(tail=1)):
        newest = output.attributed(line)
    return newest


async def leave() -> bool:
    """The reaction of commands that only look: stop looking."""
    return True


def canceling(application: Application, run_id: RunId, view: View) -> Reaction:
    """The reaction of ``run``: cancel first, leave when asked again."""
    asked = False

    async def react() -> bool:
        nonlocal asked
        if asked:
            return True
        asked = True
        view.notice("canceling the run and waiting for its end; Ctrl-C again leaves at once")
        with contextlib.suppress(NotPossible):  # it ended in this very moment
            await application.cancel(run_id, by=session.person())
        return False

    return react


async def to_the_end(application: Application, run_id: RunId, *, as_json: bool) -> int:
    """Follow a run, print its results, and give the exit code that tells how it ended."""
    hint = "Ctrl-C stops watching; the run goes on"
    view: View = views.JsonView() if as_json else views.choose(hint)
    async with Interrupts() as interrupts:
        with view:
            ended = await follow(application, run_id, view, interrupts, leave)
    if ended is None:
        terminal.say(f"the run goes on: anubis watch {states.short(run_id)}")
        return exits.INTERRUPTED
    if not as_json:
        await showing.results(application, ended, as_json=False)
    return exits.of(ended.state)
