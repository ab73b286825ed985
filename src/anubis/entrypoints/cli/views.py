"""Ways of showing a run while it goes on: live on a terminal, as lines, as JSON, or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol, Self

from anubis.entrypoints.cli import terminal
from anubis.entrypoints.cli.rendering.story import Story
from anubis.stages.presentation import shapes
from anubis.stages.presentation.watching import Snapshot

if TYPE_CHECKING:
    from rich.live import Live

BEAT = 0.5
"""Seconds between redraws without news. Twice a second shows that we live and costs the measured
program next to nothing."""

SHORTEST = timedelta(seconds=0.25)
"""Between two redraws, however much is new."""


class View(Protocol):
    """Shows one run. Used as a context: leaving it gives the terminal back as it was."""

    beat: float | None  #: how often ``tick`` is wanted, in seconds; None: never

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    def show(self, snapshot: Snapshot, now: datetime) -> None:
        """Something changed."""
        ...

    def tick(self, last_line: str, now: datetime) -> None:
        """Time passed; ``last_line`` is the newest line of output, or why the run waits."""
        ...

    def notice(self, text: str) -> None:
        """Tell what Ctrl-C did."""
        ...


class SilentView:
    """Shows nothing: for ``run --json``, which answers once, at the end."""

    beat: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing was taken."""

    def show(self, snapshot: Snapshot, now: datetime) -> None:
        """Stay silent."""

    def tick(self, last_line: str, now: datetime) -> None:
        """Stay silent."""

    def notice(self, text: str) -> None:
        """Remarks are for people and go to stderr."""
        terminal.say(text)


class JsonView(SilentView):
    """One JSON line per change."""

    def show(self, snapshot: Snapshot, now: datetime) -> None:
        """Print what is new."""
        shape = shapes.snapshot(
            snapshot.run,
            snapshot.events,
            snapshot.summaries,
            now,
            waiting_for=snapshot.waiting_for,
        )
        terminal.echo(shapes.line(shape))
        terminal.flush()


class LineView(SilentView):
    """One line per change, without moving a cursor."""

    def __init__(self) -> None:
        self._story = Story()

    def __exit__(self, *exception: object) -> None:
        terminal.echo("\n")  # apart from what comes after

    def show(self, snapshot: Snapshot, now: datetime) -> None:
        """Print what is new."""
        happened = self._story.lines(snapshot.events, snapshot.summaries, now)
        waiting = self._story.waiting(snapshot.waiting_for, now)
        for line in (*happened, *waiting):
            terminal.echo(line + "\n")
        terminal.flush()


class LiveView:
    """A few lines, redrawn in place."""

    beat: float | None = BEAT

    def __init__(self, hint: str) -> None:
        # Here and not above: only this view may pay for importing Rich.
        from rich.console import Console

        from anubis.entrypoints.cli.rendering import live

        self._drawing = live
        self._console = Console(highlight=False)
        self._live: Live | None = None
        self._trends = live.Trends()
        self._notice = hint
        self._snapshot: Snapshot | None = None
        self._last_line = ""
        self._happened = ""
        self._drawn_at: datetime | None = None
        self._beats = 0

    def __enter__(self) -> Self:
        from rich.live import Live

        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw, unless we have just drawn; the next tick will."""
        self._snapshot = snapshot
        if snapshot.events:
            self._happened = snapshot.events[-1].message
        self._happened = snapshot.waiting_for or self._happened
        self._trends.add(snapshot.summaries)
        if self._drawn_at is None or now - self._drawn_at >= SHORTEST:
            self._draw(now)

    def tick(self, last_line: str, now: datetime) -> None:
        """Draw with the newest output."""
        self._last_line = last_line
        self._draw(now)

    def notice(self, text: str) -> None:
        """Show the remark in the frame."""
        self._notice = text

    def _draw(self, now: datetime) -> None:
        if self._live is None or self._snapshot is None:
            return
        scene = self._drawing.Scene(
            run=self._snapshot.run,
            summaries=self._snapshot.summaries,
            trends=self._trends.values,
            last_line=self._last_line or self._happened,
            notice=self._notice,
            beat=self._beats,
            now=now,
        )
        width, height = self._console.size
        self._live.update(self._drawing.frame(scene, width=width, height=height), refresh=True)
        self._drawn_at, self._beats = now, self._beats + 1


def choose(hint: str, environ: Mapping[str, str] = os.environ) -> View:
    """The live view where stdout can show it, lines elsewhere."""
    if terminal.is_lively(sys.stdout, environ):
        return LiveView(hint)
    return LineView()
