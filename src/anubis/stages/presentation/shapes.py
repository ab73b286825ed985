"""The JSON of ``--json`` and of the HTTP API. Field names are a promise: docs/reference/cli.md."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TypedDict

from anubis.domain.demand import Demand
from anubis.domain.document import Document, Fingerprint
from anubis.domain.event import Event, Scalar
from anubis.domain.logline import LogLine
from anubis.domain.metric import Summary
from anubis.domain.problem import Problem
from anubis.domain.run import Outcome, Run, RunId
from anubis.domain.schedule import Schedule
from anubis.ports.schedule_store import ScheduleEvent


class OutcomeShape(TypedDict):
    """How a run ended."""

    state: str
    reason: str
    cause: str
    unit: str | None
    exit_code: int | None
    signal: int | None
    last_lines: list[str]


class DemandShape(TypedDict):
    """What a run asks of the machine. Zero asks for nothing in particular."""

    cpus: float
    memory_bytes: int
    gpus: int
    exclusive: bool
    concurrency: int | None


class RunShape(TypedDict):
    """A run. Moments are ISO 8601 in UTC; ``elapsed_seconds`` counts from the program's start."""

    id: str
    state: str
    benchmark: str
    engine: str
    descriptor_sha: str
    submitter: str
    labels: dict[str, str]
    family: str | None
    priority: int
    demand: DemandShape
    waiting_for: str | None
    version: int
    submitted_at: str
    state_since: str
    deadline: str
    started_at: str | None
    ended_at: str | None
    cancel_requested_at: str | None
    elapsed_seconds: float
    outcome: OutcomeShape | None


class EventShape(TypedDict):
    """Something that happened to a run."""

    number: int
    sequence: int
    run: str
    at: str
    kind: str
    message: str
    data: Mapping[str, Scalar]


class MetricShape(TypedDict):
    """The statistics of one series. A value that is no finite number is null."""

    unit: str
    name: str
    source: str
    units: str
    count: int
    mean: float | None
    median: float | None
    min: float | None
    max: float | None
    std: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    first: float | None
    last: float | None


class ProblemShape(TypedDict):
    """Something wrong with a descriptor."""

    file: str
    line: int
    column: int
    field: str
    found: str
    expected: str
    hint: str
    severity: str


class DocumentShape(TypedDict):
    """A descriptor as it was submitted. Bytes that are not UTF-8 are replaced."""

    run: str
    name: str
    directory: str
    script: str
    sha: str
    content: str


class LineShape(TypedDict):
    """A line of output. Bytes that are not UTF-8 are replaced."""

    number: int
    at: str
    unit: str
    stream: str
    text: str


class ExactLineShape(LineShape):
    """A line of output from which its bytes can be made again."""

    newline: bool
    base64: str | None


class EnvironmentShape(TypedDict):
    """The environment a run had: what rarely changes on its machine, and what was true then."""

    machine: dict[str, object]
    moment: dict[str, object]


class StatusShape(TypedDict):
    """A run with all that is known about it: ``status``, ``results``, ``run``."""

    run: RunShape
    events: list[EventShape]
    metrics: list[MetricShape]
    environment: EnvironmentShape | None


class SnapshotShape(TypedDict):
    """A run with what happened to it and what was measured since the last one: ``watch``."""

    run: RunShape
    events: list[EventShape]
    metrics: list[MetricShape]


class ScheduleShape(TypedDict):
    """A schedule. ``next_at`` is null while it is paused, or if it never fires again."""

    id: str
    benchmark: str
    cron: str
    time_zone: str
    overlap: str
    catch_up: str
    engine: str
    priority: int
    descriptor_sha: str
    submitter: str
    created_at: str
    paused_at: str | None
    next_at: str | None
    last_at: str | None
    last_run: str | None
    last_note: str
    fired: int
    version: int


class ScheduleDetailShape(ScheduleShape):
    """A schedule with its next firings."""

    upcoming: list[str]


class ScheduleEventShape(TypedDict):
    """Something that happened to a schedule."""

    number: int
    schedule: str
    at: str
    kind: str
    message: str
    run: str | None


def line(value: object) -> str:
    """One JSON text on one line, with its newline."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"


def snapshot(
    run: Run,
    events: Sequence[Event],
    summaries: Sequence[Summary],
    now: datetime,
    *,
    waiting_for: str = "",
) -> SnapshotShape:
    """A run and what belongs to it."""
    return SnapshotShape(
        run=run_shape(run, now, waiting_for),
        events=[event_shape(event) for event in events],
        metrics=[metric_shape(summary) for summary in summaries],
    )


def run_shape(run: Run, now: datetime, waiting_for: str = "") -> RunShape:
    """A run as it is at ``now``; ``waiting_for`` says why one that waits does."""
    return RunShape(
        id=run.id,
        state=run.state.value,
        benchmark=run.benchmark,
        engine=run.engine,
        descriptor_sha=run.descriptor_sha,
        submitter=run.submitter,
        labels=dict(run.labels),
        family=run.family,
        priority=run.priority,
        demand=demand_shape(run.demand),
        waiting_for=waiting_for or None,
        version=run.version,
        submitted_at=iso(run.submitted_at),
        state_since=iso(run.state_since),
        deadline=iso(run.deadline),
        started_at=_maybe(run.started_at),
        ended_at=_maybe(run.ended_at),
        cancel_requested_at=_maybe(run.cancel_requested_at),
        elapsed_seconds=run.elapsed(now).total_seconds(),
        outcome=_outcome(run.outcome),
    )


def demand_shape(demand: Demand) -> DemandShape:
    """What a run asks for."""
    return DemandShape(
        cpus=demand.cpus,
        memory_bytes=demand.memory_bytes,
        gpus=demand.gpus,
        exclusive=demand.exclusive,
        concurrency=demand.concurrency,
    )


def _outcome(outcome: Outcome | None) -> OutcomeShape | None:
    if outcome is None:
        return None
    return OutcomeShape(
        state=outcome.state.value,
        reason=outcome.reason,
        cause=outcome.cause.value,
        unit=outcome.unit,
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        last_lines=list(outcome.last_lines),
    )


def event_shape(event: Event) -> EventShape:
    """An event."""
    return EventShape(
        number=event.number,
        sequence=event.sequence,
        run=event.run_id,
        at=iso(event.at),
        kind=event.kind.value,
        message=event.message,
        data=dict(event.data),
    )


def metric_shape(summary: Summary) -> MetricShape:
    """A summary."""
    return MetricShape(
        unit=summary.key.unit,
        name=summary.key.name,
        source=summary.key.source.value,
        units=summary.units,
        count=summary.count,
        mean=_finite(summary.mean),
        median=_finite(summary.median),
        min=_finite(summary.minimum),
        max=_finite(summary.maximum),
        std=_finite(summary.std),
        p90=_finite(summary.p90),
        p95=_finite(summary.p95),
        p99=_finite(summary.p99),
        first=_finite(summary.first),
        last=_finite(summary.last),
    )


def status_shape(snapshot: SnapshotShape, fingerprint: Fingerprint | None) -> StatusShape:
    """A snapshot with the environment of the run, once that is known."""
    environment = None
    if fingerprint is not None:
        environment = EnvironmentShape(
            machine=json.loads(fingerprint.machine), moment=json.loads(fingerprint.moment)
        )
    return StatusShape(**snapshot, environment=environment)


def problem_shape(problem: Problem) -> ProblemShape:
    """A problem."""
    return ProblemShape(
        file=problem.file,
        line=problem.line,
        column=problem.column,
        field=problem.field,
        found=problem.found,
        expected=problem.expected,
        hint=problem.hint,
        severity=problem.severity.value,
    )


def document_shape(run_id: RunId, document: Document) -> DocumentShape:
    """The descriptor of a run."""
    return DocumentShape(
        run=run_id,
        name=document.name,
        directory=document.directory,
        script=document.script,
        sha=document.sha,
        content=document.content.decode("utf-8", "replace"),
    )


def line_shape(line: LogLine) -> LineShape:
    """A line of output, without the newline at its end."""
    return LineShape(
        number=line.number,
        at=iso(line.at),
        unit=line.unit,
        stream=line.stream.value,
        text=line.text.decode("utf-8", "replace").removesuffix("\n"),
    )


def exact_line_shape(line: LogLine) -> ExactLineShape:
    """A line of output; ``base64`` has its bytes, newline included, where they are not UTF-8."""
    try:
        line.text.decode()
        encoded = None
    except UnicodeDecodeError:
        encoded = base64.b64encode(line.text).decode()
    return ExactLineShape(**line_shape(line), newline=line.text.endswith(b"\n"), base64=encoded)


def schedule_shape(schedule: Schedule) -> ScheduleShape:
    """A schedule."""
    return ScheduleShape(
        id=schedule.id,
        benchmark=schedule.benchmark,
        cron=schedule.cron,
        time_zone=schedule.time_zone,
        overlap=schedule.overlap.value,
        catch_up=schedule.catch_up.value,
        engine=schedule.engine,
        priority=schedule.priority,
        descriptor_sha=schedule.descriptor_sha,
        submitter=schedule.submitter,
        created_at=iso(schedule.created_at),
        paused_at=_maybe(schedule.paused_at),
        next_at=_maybe(schedule.next_at),
        last_at=_maybe(schedule.last_at),
        last_run=schedule.last_run,
        last_note=schedule.last_note,
        fired=schedule.fired,
        version=schedule.version,
    )


def schedule_detail(schedule: Schedule, upcoming: Sequence[datetime]) -> ScheduleDetailShape:
    """A schedule and when it fires next."""
    return ScheduleDetailShape(
        **schedule_shape(schedule), upcoming=[iso(moment) for moment in upcoming]
    )


def schedule_event_shape(event: ScheduleEvent) -> ScheduleEventShape:
    """An event of a schedule."""
    return ScheduleEventShape(
        number=event.number,
        schedule=event.schedule_id,
        at=iso(event.at),
        kind=event.kind.value,
        message=event.message,
        run=event.run_id,
    )


def iso(at: datetime) -> str:
    """ISO 8601 in UTC, always with microseconds, so that texts sort like the moments."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _maybe(at: datetime | None) -> str | None:
    return None if at is None else iso(at)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
