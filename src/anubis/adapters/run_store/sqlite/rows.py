"""Translate between rows and runs. The only module that knows how a run is spelled in SQL."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from anubis.adapters.sqlite import documents
from anubis.adapters.sqlite.values import (
    Parameters,
    Row,
    instant,
    maybe_instant,
    maybe_micros,
    maybe_storable,
    micros,
    storable,
)
from anubis.domain.demand import Demand
from anubis.domain.document import Document
from anubis.domain.event import Event, EventKind, NewEvent
from anubis.domain.metric import MetricKey, MetricSource, Summary
from anubis.domain.run import Cause, Lease, Outcome, Run, RunId, RunState, WorkerId
from anubis.ports.history import TrendPoint

_FIGURES = ("mean", "median", "minimum", "maximum", "std", "p90", "p95", "p99", "first", "last")


def run(row: Row) -> Run:
    """The run of a row of ``run_by_id`` or ``runs_by_ids``."""
    return Run(
        id=row[0],
        state=RunState(row[1]),
        version=row[2],
        benchmark=row[3],
        engine=row[4],
        descriptor_sha=row[5],
        submitter=row[6],
        labels=_labels(row[7]),
        family=row[8],
        submitted_at=instant(row[9]),
        state_since=instant(row[10]),
        deadline=instant(row[11]),
        started_at=maybe_instant(row[12]),
        ended_at=maybe_instant(row[13]),
        cancel_requested_at=maybe_instant(row[14]),
        lease=_lease(row[15], row[16]),
        outcome=_outcome(row[17]),
        priority=row[18],
        demand=_demand(row[19:24]),
    )


def key_and_events(row: Row) -> tuple[int, int]:
    """The key of the row's run and the number of its last event."""
    return row[24], row[25]


def new_run(new: Run, document: Document, key: str | None) -> Parameters:
    """Parameters of ``add_run``."""
    demand = new.demand
    return {
        "id": new.id,
        "benchmark": storable(new.benchmark),
        "engine": storable(new.engine),
        "descriptor_sha": new.descriptor_sha,
        "submitter": storable(new.submitter),
        "labels": json.dumps(new.labels),
        "family": maybe_storable(new.family),
        "submitted_at": micros(new.submitted_at),
        "priority": new.priority,
        "cpus": demand.cpus,
        "memory_bytes": demand.memory_bytes,
        "gpus": demand.gpus,
        "exclusive": int(demand.exclusive),
        "concurrency": demand.concurrency,
        "submission_key": maybe_storable(key),
        **documents.columns(document),
        **changed_run(new),
    }


def changed_run(changed: Run) -> Parameters:
    """Parameters of ``move_run`` and ``touch_run``, without the key and the last event."""
    lease = changed.lease
    return {
        "state": changed.state.value,
        "version": changed.version,
        "state_since": micros(changed.state_since),
        "deadline": micros(changed.deadline),
        "started_at": maybe_micros(changed.started_at),
        "ended_at": maybe_micros(changed.ended_at),
        "cancel_requested_at": maybe_micros(changed.cancel_requested_at),
        "lease_worker": None if lease is None else storable(lease.worker),
        "lease_ends": None if lease is None else micros(lease.ends),
        "outcome": None if changed.outcome is None else _outcome_text(changed.outcome),
    }


def labels(carried: Run) -> Sequence[Parameters]:
    """Parameters of ``add_label`` and ``delete_label``, for each label of a run."""
    return [
        {"name": storable(name), "value": storable(value), "id": carried.id}
        for name, value in carried.labels
    ]


def event(run_id: RunId, row: Row) -> Event:
    """The event of a row of ``events``."""
    sequence, number, at, kind, message, data = row
    return Event(
        run_id=run_id,
        number=number,
        sequence=sequence,
        at=instant(at),
        kind=EventKind(kind),
        message=message,
        data=json.loads(data),
    )


def feed_event(row: Row) -> Event:
    """The event of a row of ``feed``."""
    return event(row[0], row[1:])


def new_event(key: int, number: int, new: NewEvent) -> Parameters:
    """Parameters of ``add_event``."""
    return {
        "run": key,
        "number": number,
        "at": micros(new.at),
        "kind": new.kind.value,
        "message": storable(new.message),
        "data": json.dumps(dict(new.data)),
    }


def summary(row: Row) -> Summary:
    """The summary of a row of ``summaries``."""
    unit, source, name, units, count, *figures = row
    values = dict(zip(_FIGURES, map(_number, figures), strict=True))
    key = MetricKey(unit=unit, name=name, source=MetricSource(source))
    return Summary(key=key, units=units, count=count, **values)


def trend_point(row: Row) -> TrendPoint:
    """The point of a row of ``trend``."""
    run_id, state, submitted_at, *measured = row
    return TrendPoint(
        run_id=run_id,
        state=RunState(state),
        submitted_at=instant(submitted_at),
        summary=summary(tuple(measured)),
    )


def new_summary(key: int, new: Summary) -> Parameters:
    """Parameters of ``add_summary``."""
    return {
        "run": key,
        "unit": storable(new.key.unit),
        "source": new.key.source.value,
        "name": storable(new.key.name),
        "units": storable(new.units),
        "count": new.count,
        **{figure: float(getattr(new, figure)) for figure in _FIGURES},
    }


def _number(stored: float | None) -> float:
    return math.nan if stored is None else stored


def _labels(stored: str) -> tuple[tuple[str, str], ...]:
    if stored == "[]":
        return ()
    return tuple((name, value) for name, value in json.loads(stored))


def _demand(stored: Row) -> Demand:
    cpus, memory_bytes, gpus, exclusive, concurrency = stored
    return Demand(
        cpus=cpus,
        memory_bytes=memory_bytes,
        gpus=gpus,
        exclusive=bool(exclusive),
        concurrency=concurrency,
    )


def _lease(worker: str | None, ends: int | None) -> Lease | None:
    if worker is None or ends is None:
        return None
    return Lease(worker=WorkerId(worker), ends=instant(ends))


def _outcome(stored: str | None) -> Outcome | None:
    if stored is None:
        return None
    fields = json.loads(stored)
    return Outcome(
        state=RunState(fields["state"]),
        reason=fields["reason"],
        cause=Cause(fields.get("cause", Cause.UNKNOWN)),
        unit=fields["unit"],
        exit_code=fields["exit_code"],
        signal=fields["signal"],
        last_lines=tuple(fields["last_lines"]),
    )


def _outcome_text(outcome: Outcome) -> str:
    fields = {
        "state": outcome.state.value,
        "reason": outcome.reason,
        "cause": outcome.cause.value,
        "unit": outcome.unit,
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
        "last_lines": outcome.last_lines,
    }
    return json.dumps(fields)
