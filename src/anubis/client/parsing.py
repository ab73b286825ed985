"""From the JSON of the API to the values of the domain: ``stages.presentation.shapes`` backwards.

Each function takes the fields of one object and raises UnexpectedAnswer for what is not as the
shapes promise.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import math

from anubis.client.fields import LARGEST, Fields
from anubis.domain.demand import Capacity, Demand
from anubis.domain.document import Fingerprint
from anubis.domain.errors import UnexpectedAnswer
from anubis.domain.event import Event, EventKind
from anubis.domain.logline import LogLine
from anubis.domain.metric import MetricKey, MetricSource, Summary
from anubis.domain.observation import Stream
from anubis.domain.problem import Problem, Severity
from anubis.domain.run import Cause, Outcome, Run, RunId, RunState
from anubis.ports.history import Group, TrendPoint
from anubis.ports.series_store import Column


def run(fields: Fields) -> Run:
    """A run; who works on it stays with the service."""
    demanded, ended = fields.part("demand"), fields.maybe_part("outcome")
    return Run(
        id=RunId(fields.word("id")),
        state=fields.choice("state", RunState),
        version=fields.whole("version"),
        benchmark=fields.text("benchmark"),
        engine=fields.word("engine"),
        descriptor_sha=fields.text("descriptor_sha"),
        submitter=fields.text("submitter"),
        labels=fields.pairs("labels"),
        family=fields.maybe_text("family"),
        priority=fields.whole("priority"),
        demand=demand(demanded),
        submitted_at=fields.moment("submitted_at"),
        state_since=fields.moment("state_since"),
        deadline=fields.moment("deadline"),
        started_at=fields.maybe_moment("started_at"),
        ended_at=fields.maybe_moment("ended_at"),
        cancel_requested_at=fields.maybe_moment("cancel_requested_at"),
        outcome=None if ended is None else outcome(ended),
    )


def demand(fields: Fields) -> Demand:
    """What a run asks of its machine."""
    return Demand(
        cpus=fields.number("cpus"),
        memory_bytes=fields.whole("memory_bytes"),
        gpus=fields.whole("gpus"),
        exclusive=fields.flag("exclusive"),
        concurrency=fields.maybe_whole("concurrency"),
    )


def outcome(fields: Fields) -> Outcome:
    """How a run ended."""
    state = fields.choice("state", RunState)
    if not state.is_terminal:
        raise UnexpectedAnswer(f"the service answered something unexpected: a run ended in {state}")
    return Outcome(
        state=state,
        reason=fields.text("reason"),
        cause=fields.choice("cause", Cause),
        unit=fields.maybe_text("unit"),
        exit_code=fields.maybe_whole("exit_code"),
        signal=fields.maybe_whole("signal"),
        last_lines=tuple(fields.texts("last_lines")),
    )


def event(fields: Fields) -> Event:
    """Something that happened to a run."""
    return Event(
        run_id=RunId(fields.word("run")),
        number=fields.whole("number"),
        sequence=fields.whole("sequence"),
        at=fields.moment("at"),
        kind=fields.choice("kind", EventKind),
        message=fields.text("message"),
        data=fields.scalars("data"),
    )


def summary(fields: Fields) -> Summary:
    """The statistics of a metric. What was not finite comes as nothing, and is no number here."""

    def figure(name: str) -> float:
        return fields.number(name) if fields.has(name) else math.nan

    return Summary(
        key=metric_key(fields),
        units=fields.text("units"),
        count=fields.whole("count"),
        mean=figure("mean"),
        median=figure("median"),
        minimum=figure("min"),
        maximum=figure("max"),
        std=figure("std"),
        p90=figure("p90"),
        p95=figure("p95"),
        p99=figure("p99"),
        first=figure("first"),
        last=figure("last"),
    )


def metric_key(fields: Fields) -> MetricKey:
    """Which series is meant."""
    return MetricKey(
        unit=fields.text("unit"),
        name=fields.text("name"),
        source=fields.choice("source", MetricSource),
    )


def column(fields: Fields) -> Column:
    """The samples of one series."""
    instants, values = fields.items("at"), fields.items("values")
    if len(instants) != len(values):
        raise UnexpectedAnswer(
            "the service answered something unexpected: "
            f"a series of {len(instants)} instants and {len(values)} values"
        )
    return [_instant(one) for one in instants], [_value(one) for one in values]


def _instant(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > LARGEST:
        raise UnexpectedAnswer(f"the service answered something unexpected: the instant {value!r}")
    return value


def _value(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            return float(value)
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(str(value))
    raise UnexpectedAnswer(f"the service answered something unexpected: the value {value!r}")


def line(fields: Fields) -> LogLine:
    """A line of output, with the very bytes the program wrote."""
    encoded = fields.maybe_text("base64")
    text = fields.text("text").encode() if encoded is None else _bytes(encoded)
    if fields.flag("newline") and not text.endswith(b"\n"):
        text += b"\n"
    return LogLine(
        number=fields.whole("number"),
        at=fields.moment("at"),
        unit=fields.text("unit"),
        stream=fields.choice("stream", Stream),
        text=text,
    )


def _bytes(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise UnexpectedAnswer(
            f"the service answered something unexpected: output that is no base64 ({error})"
        ) from error


def problem(fields: Fields) -> Problem:
    """Something wrong with a descriptor."""
    return Problem(
        file=fields.text("file"),
        line=fields.whole("line"),
        column=fields.whole("column"),
        field=fields.text("field"),
        found=fields.text("found"),
        expected=fields.text("expected"),
        hint=fields.text("hint"),
        severity=fields.choice("severity", Severity),
    )


def problems(fields: Fields, name: str) -> tuple[Problem, ...]:
    """A list of them."""
    return tuple(problem(one) for one in fields.parts(name))


def fingerprint(fields: Fields) -> Fingerprint:
    """The environment of a run."""
    return Fingerprint(
        machine=json.dumps(fields.part("machine").raw(), ensure_ascii=False),
        moment=json.dumps(fields.part("moment").raw(), ensure_ascii=False),
    )


def group(fields: Fields) -> Group:
    """Runs that share a benchmark or a family."""
    return Group(
        name=fields.text("name"), runs=fields.whole("runs"), newest=RunId(fields.word("newest"))
    )


def trend_point(fields: Fields) -> TrendPoint:
    """What one run of a benchmark measured."""
    return TrendPoint(
        run_id=RunId(fields.word("run")),
        state=fields.choice("state", RunState),
        submitted_at=fields.moment("submitted_at"),
        summary=summary(fields.part("metric")),
    )


def capacity(fields: Fields) -> Capacity:
    """What an engine has, or has given away."""
    return Capacity(
        slots=fields.whole("slots"),
        cpus=fields.number("cpus"),
        memory_bytes=fields.whole("memory_bytes"),
        gpus=fields.whole("gpus"),
    )
