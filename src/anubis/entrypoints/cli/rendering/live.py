"""The live view of a run: a few lines that are redrawn in place. The one module that needs Rich."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from anubis.domain.metric import MetricKey, MetricSource, Summary
from anubis.domain.run import Run, RunState
from anubis.entrypoints.cli.rendering import measurements, states, text
from anubis.entrypoints.cli.rendering.sparkline import sparkline

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAME_LINES = 4  # headline, output, hint, and the cursor's own line
_TREND_CELLS = 16


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
    room = max(1, height - _FRAME_LINES)
    parts: list[RenderableType] = [_headline(scene, width)]
    if measurements.telling(scene.summaries):
        parts.append(_metrics(scene, room))
    if scene.last_line:
        line = text.shortened(text.printable(scene.last_line), max(10, width - 5))
        parts.append(Text.assemble(("  › ", "cyan"), (line, "dim")))
    parts.append(Text(f"  {scene.notice}", style="dim italic", no_wrap=True, overflow="ellipsis"))
    return Group(*parts)


def _headline(scene: Scene, width: int) -> Text:
    run = scene.run
    name = text.shortened(text.printable(run.benchmark), max(8, width - 46))
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"{_symbol(scene)} {run.state}", style=f"bold {states.colour(run.state)}")
    line.append(f"  {name}", style="bold")
    line.append(f"  {_stopwatch(scene)}")
    line.append(f"  {states.short(run.id)}", style="dim")
    return line


def _symbol(scene: Scene) -> str:
    if scene.run.state is RunState.RUNNING:
        return _SPINNER[scene.beat % len(_SPINNER)]
    return states.symbol(scene.run.state)


def _stopwatch(scene: Scene) -> str:
    run = scene.run
    span = run.elapsed(scene.now) if run.started_at else scene.now - run.submitted_at
    return text.clock(span)


def _metrics(scene: Scene, room: int) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True)
    ordered = measurements.ordered(measurements.telling(scene.summaries))
    shown = ordered if len(ordered) <= room else ordered[: room - 1]
    with_unit = measurements.several_units(scene.summaries)
    for summary in shown:
        is_resource = summary.key.source is MetricSource.RESOURCE
        label = Text(f"  {measurements.label(summary, with_unit=with_unit)}")
        value = Text(measurements.value(summary, summary.last), style="" if is_resource else "bold")
        trend = Text(_trend(scene, summary.key), style="cyan")
        table.add_row(label, value, trend, style="dim" if is_resource else "")
    if len(shown) < len(ordered):
        table.add_row(Text(f"  … {len(ordered) - len(shown)} more"), "", "", style="dim")
    return table


def _trend(scene: Scene, key: MetricKey) -> str:
    values = scene.trends.get(key, ())
    # A flat line says nothing and would draw the eye.
    return sparkline(values, _TREND_CELLS) if len(set(values)) > 1 else ""


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
