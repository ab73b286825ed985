"""The look of states, and the names by which people call runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from anubis.domain.run import Run, RunId, RunState
from anubis.entrypoints.cli.rendering import text
from anubis.entrypoints.cli.rendering.columns import Cell, painted

_LOOKS: Mapping[RunState, tuple[str, str]] = {
    RunState.SUCCEEDED: ("✔", "green"),
    RunState.FAILED: ("✘", "red"),
    RunState.CANCELED: ("■", "yellow"),
    RunState.ERROR: ("✘", "magenta"),
    RunState.RUNNING: ("●", "cyan"),
    RunState.STARTING: ("●", "cyan"),
    RunState.FINISHING: ("●", "cyan"),
}
_WAITING = ("○", "blue")

_SHORT = 18
"""Cells of a shortened id: the whole time of submission, in milliseconds, and twelve random bits.
Eight, as people shorten ids of other versions, would be the same for all runs of one minute."""


def symbol(state: RunState) -> str:
    """One character for a state."""
    return _LOOKS.get(state, _WAITING)[0]


def colour(state: RunState) -> str:
    """The colour of a state."""
    return _LOOKS.get(state, _WAITING)[1]


def short(run_id: RunId) -> str:
    """A prefix of the id that is as good as unique."""
    return run_id[:_SHORT]


def headline(run: Run, now: datetime, width: int | None = None) -> str:
    """State, benchmark and time in one line: ``✔ SUCCEEDED  hello-world in 9.8 s``."""
    state = Cell(text=f"{symbol(run.state)} {run.state}", colour=colour(run.state), bold=True)
    name, time = text.printable(run.benchmark), _time(run, now)
    if width is not None:
        name = text.shortened(name, max(1, width - text.width(state.text) - 2 - text.width(time)))
    return f"{painted(state)}  {painted(Cell(text=name, bold=True))}{time}"


def _time(run: Run, now: datetime) -> str:
    if run.started_at is None:
        return "" if run.state.is_terminal else f", for {text.duration(now - run.submitted_at)}"
    word = "in" if run.state.is_terminal else "for"
    return f" {word} {text.duration(run.elapsed(now))}"
