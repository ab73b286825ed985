"""A run on one screen: where it stands (``status``), or how it ended (``results``)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from anubis.domain.event import Event, EventKind
from anubis.domain.logline import LogLine
from anubis.domain.metric import Summary
from anubis.domain.run import Run, RunState
from anubis.entrypoints.cli.rendering import measurements, output, states, text
from anubis.entrypoints.cli.rendering.columns import Cell, painted

_UNHAPPY = frozenset({RunState.FAILED, RunState.ERROR, RunState.CANCELED})


def status(
    run: Run,
    events: Sequence[Event],
    now: datetime,
    environment: Sequence[tuple[str, str]] = (),
    width: int | None = None,
    *,
    waiting_for: str = "",
) -> str:
    """Where a run stands and why it waits, its facts, its environment, and its story."""
    facts = [
        ("run", run.id),
        ("engine", run.engine),
        ("priority", f"{run.priority}" if run.priority else ""),
        ("submitted", _when(run.submitted_at, now) + f" by {run.submitter}"),
        ("started", _when(run.started_at, now)),
        ("ended", _when(run.ended_at, now)),
        ("cancel", _when(run.cancel_requested_at, now)),
        ("labels", ", ".join(f"{key}={value}" for key, value in run.labels)),
        ("family", run.family or ""),
        ("descriptor", f"sha256 {run.descriptor_sha[:12]}"),
        *environment,
    ]
    why = text.hanging(text.printable(waiting_for), width, after="  ", indent="  ")
    parts = [
        *_head(run, now, width),
        *(why if waiting_for else []),
        "",
        *fact_lines(facts, width),
        "",
    ]
    parts += [*_story(events, width), "", *_next(run, Hints.STATUS, width)]
    return page(parts)


def results(
    run: Run,
    summaries: Sequence[Summary],
    now: datetime,
    warnings: Sequence[Event] = (),
    tail: Sequence[LogLine] = (),
    width: int | None = None,
) -> str:
    """How a run ended, what to know about it, what it measured, and where to look next.

    A run that did not succeed shows the last lines of its outcome instead of ``tail``.
    """
    shown = measurements.telling(summaries)
    news = [event for event in warnings if not _is_reason(event, run)]
    parts = [*_head(run, now, width), *_last_lines(run), "", *_warnings(news, width), ""]
    if shown:
        parts += [measurements.metrics_table(shown, width=width).rstrip("\n"), ""]
    elif run.state.is_terminal:
        parts += ["  no metrics were reported", ""]
    if tail and not _last_lines(run):
        parts += [output.excerpt(tail).rstrip("\n"), ""]
    has_several = measurements.several_units(summaries)
    hints = Hints.RESULTS_OF_SEVERAL if has_several else Hints.RESULTS
    return page([*parts, *_next(run, hints, width)])


def event_line(event: Event) -> str:
    """One event: time of day, what sort, and the sentence."""
    [line] = _event_lines(event, None, indent="")
    return line


def _event_lines(event: Event, width: int | None, *, indent: str) -> list[str]:
    at = painted(Cell(text=event.at.astimezone().strftime("%H:%M:%S"), dim=True))
    after = f"{indent}{at}  {_sort(event)}  "
    message = text.printable(event.message)
    return text.hanging(message, width, after=after, indent=" " * _hang(width, 21 + len(indent)))


def _hang(width: int | None, column: int) -> int:
    """Where lines go on: below their first one, unless that leaves too little room."""
    return column if width is None or width >= 60 else 4


class Hints:
    """Where to look next, by situation: command and what it shows."""

    STATUS = (("results", "the outcome and the metrics"), ("logs", "everything it printed"))
    RESULTS = (("logs", "everything it printed"), ("metrics --csv", "every sample"))
    RESULTS_OF_SEVERAL = (("logs --names", "everything they printed"), RESULTS[1])
    ACTIVE = (("watch", "follow it live"), ("cancel", "stop it"))


def _sort(event: Event) -> str:
    to = event.data.get("to")
    if event.kind is EventKind.STATE and to in RunState.__members__:
        state = RunState[str(to)]
        return painted(Cell(text=f"{state:<9}", colour=states.colour(state)))
    if event.kind is EventKind.WARNING:
        return painted(Cell(text=f"{'warning':<9}", colour="yellow"))
    word = "cancel" if event.kind is EventKind.CANCEL_REQUESTED else event.kind.value
    return f"{word:<9}"


def _story(events: Sequence[Event], width: int | None) -> list[str]:
    return [line for event in events for line in _event_lines(event, width, indent="  ")]


def _head(run: Run, now: datetime, width: int | None) -> list[str]:
    headline = states.headline(run, now, width)
    if run.outcome is None:
        return [headline]
    reason = text.printable(run.outcome.reason)
    return [headline, *text.hanging(reason, width, after="  ", indent="  ")]


def _last_lines(run: Run) -> list[str]:
    if run.outcome is None or run.state not in _UNHAPPY or not run.outcome.last_lines:
        return []
    bar = painted(Cell(text="│", colour=states.colour(run.state)))
    return ["", *(f"  {bar} {text.printable(line)}" for line in run.outcome.last_lines)]


def _is_reason(event: Event, run: Run) -> bool:
    """Whether a warning only tells what the outcome says: it was given before the run ended."""
    return run.outcome is not None and event.message.startswith(run.outcome.reason)


def _warnings(warnings: Sequence[Event], width: int | None) -> list[str]:
    mark = painted(Cell(text="!", colour="yellow", bold=True))
    return [
        line
        for event in warnings
        for line in text.hanging(
            text.printable(event.message), width, after=f"  {mark} ", indent="    "
        )
    ]


def fact_lines(facts: Sequence[tuple[str, str]], width: int | None) -> list[str]:
    """Names and values below each other; a fact without a value is left out."""
    return [
        line
        for name, value in facts
        if value
        for line in text.hanging(
            text.printable(value),
            width,
            after=f"  {painted(Cell(text=f'{name:<10}', dim=True))}  ",
            indent=" " * _hang(width, 14),
        )
    ]


def _next(run: Run, hints: Sequence[tuple[str, str]], width: int | None) -> list[str]:
    """Commands to call next; what they show, or one of them, is left out without room."""
    if not run.state.is_terminal:
        hints = Hints.ACTIVE
    calls = [_call(run, command) for command, _ in hints]
    cells = max(map(len, calls))
    lines = [f"  {call:<{cells}}  {shows}" for call, (_, shows) in zip(calls, hints, strict=True)]
    if width is not None and max(map(len, lines)) > width:
        lines = [f"  {call}" for call in calls if len(call) + 2 <= width]
    return [painted(Cell(text=line, dim=True)) for line in lines]


def _call(run: Run, command: str) -> str:
    verb, *options = command.split()
    return " ".join(["anubis", verb, states.short(run.id), *options])


def _when(at: datetime | None, now: datetime) -> str:
    return "" if at is None else f"{text.moment(at)} ({text.age(at, now)})"


def page(parts: Sequence[str]) -> str:
    """Join the parts, with never more than one empty line in a row."""
    lines: list[str] = []
    for part in parts:
        if part or (lines and lines[-1]):
            lines.append(part)
    return "\n".join(lines).rstrip("\n") + "\n"
