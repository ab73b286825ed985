"""The live view of a run: a few lines that are redrawn in place. The one module that needs Rich."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from anubis.domain.metric import MetricKey, MetricSource, Summary
from anubis.domain.run import Run, RunState
from anubis.entrypoints.cli.rendering import measurements, states, text
from anubis.entrypoints.cli.rendering.sparkline import sparkline

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAME_LINES = 3  # headline, output, and the cursor's own line
_INDENT, _GAP = 2, 2
_TREND_CELLS, _SHORTEST_TREND = 16, 4
_READABLE = 12  # cells of a name that may be shortened for the sake of the id


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """All that a frame shows."""

    run: Run
    summaries: Sequence[Summary]
    trends: Mapping[MetricKey, Sequence[float]]  #: values seen so far, by this watcher
    last_line: str  #: the newest line of output; before the first, what happened last
    notice: str  #: what Ctrl-C does now
    beat: int  #: how many frames were drawn
    now: datetime


def frame(scene: Scene, *, width: int, height: int) -> RenderableType:
    """Draw a scene into so many cells and lines."""
    notice = text.hanging(scene.notice, width, after="  ", indent="  ")
    parts = [_headline(scene, width)]
    parts += _metrics(scene, width, room=max(1, height - _FRAME_LINES - len(notice)))
    if scene.last_line:
        line = text.shortened(text.printable(scene.last_line), max(10, width - 5))
        parts.append(Text.assemble(("  › ", "cyan"), (line, "dim")))
    parts += [Text(line, style="dim italic") for line in notice]
    return Group(*parts)


def _headline(scene: Scene, width: int) -> Text:
    """State, name and time; the id where there is room for it besides."""
    run = scene.run
    state, time = f"{_symbol(scene)} {run.state}", f"  {_stopwatch(scene)}"
    room = width - text.width(state) - 2 - text.width(time)
    name, run_id = text.printable(run.benchmark), f"  {states.short(run.id)}"
    has_id = room - len(run_id) >= min(text.width(name), _READABLE)
    name = text.shortened(name, max(1, room - len(run_id) * has_id))
    line = Text(no_wrap=True)
    line.append(state, style=f"bold {states.colour(run.state)}")
    line.append(f"  {name}", style="bold")
    line.append(time)
    return line.append(run_id, style="dim") if has_id else line


def _symbol(scene: Scene) -> str:
    if scene.run.state is RunState.RUNNING:
        return _SPINNER[scene.beat % len(_SPINNER)]
    return states.symbol(scene.run.state)


def _stopwatch(scene: Scene) -> str:
    run = scene.run
    span = run.elapsed(scene.now) if run.started_at else scene.now - run.submitted_at
    return text.clock(span)


def _metrics(scene: Scene, width: int, *, room: int) -> list[Text]:
    """A line per metric: values are whole, names are shortened, and the course goes first."""
    ordered = measurements.ordered(measurements.telling(scene.summaries))
    shown = ordered if len(ordered) <= room else ordered[: room - 1]
    with_unit = measurements.several_units(scene.summaries)
    labels = [measurements.label(one, with_unit=with_unit) for one in shown]
    values = [measurements.value(one, one.last) for one in shown]
    value_cells = max(map(text.width, values), default=0)
    left = width - _INDENT - _GAP - value_cells
    label_cells = max(1, min(left, max(map(text.width, labels), default=0)))
    trend_cells = min(_TREND_CELLS, left - label_cells - _GAP)
    lines = []
    for summary, label, value in zip(shown, labels, values, strict=True):
        is_resource = summary.key.source is MetricSource.RESOURCE
        name = text.shortened(label, label_cells)
        padding = " " * (label_cells - text.width(name) + _GAP + value_cells - text.width(value))
        line = Text(f"{'':{_INDENT}}{name}{padding}", no_wrap=True)
        line.append(value, style="" if is_resource else "bold")
        line.append(f"{'':{_GAP}}{_trend(scene, summary.key, trend_cells)}", style="cyan")
        line.rstrip()
        line.stylize("dim" if is_resource else "")
        lines.append(line)
    if len(shown) < len(ordered):
        lines.append(Text(f"{'':{_INDENT}}… {len(ordered) - len(shown)} more", style="dim"))
    return lines


def _trend(scene: Scene, key: MetricKey, cells: int) -> str:
    values = scene.trends.get(key, ())
    # A flat line says nothing and would draw the eye; a few blocks say nothing either.
    return sparkline(values, cells) if len(set(values)) > 1 and cells >= _SHORTEST_TREND else ""


class Trends:
    """The newest values of every metric that one watcher saw."""

    def __init__(self, keep: int = 512) -> None:
        self._keep = keep
        self._counts: dict[MetricKey, int] = {}
        self.values: dict[MetricKey, list[float]] = {}

    def add(self, summaries: Sequence[Summary]) -> None:
        """Note the newest value of each metric that has new samples."""
        for summary in summaries:
            if self._counts.get(summary.key) == summary.count:
                continue
            self._counts[summary.key] = summary.count
            values = self.values.setdefault(summary.key, [])
            values.append(summary.last)
            del values[: -self._keep]
