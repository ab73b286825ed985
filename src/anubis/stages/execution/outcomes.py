"""Say how a run ended, in words a person can act on. Pure: observations in, outcome out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from anubis.domain.observation import EndCause, UnitEnded
from anubis.domain.plan import Plan
from anubis.domain.run import Cause, Outcome, RunState
from anubis.stages.execution.conducting import Fault
from anubis.stages.execution.wording import cause_of, describe, how_it_ended


def decide(ended: UnitEnded, plan: Plan, last_lines: tuple[str, ...]) -> Outcome:
    """Turn the end of the deciding unit into the outcome of the run."""
    state = _STATES[ended.cause]
    if ended.cause is EndCause.EXITED and ended.exit_code == 0 and ended.unit == plan.deciding:
        state = RunState.SUCCEEDED
    return Outcome(
        state=state,
        reason=how_it_ended(ended, plan),
        cause=cause_of(ended),
        unit=ended.unit,
        exit_code=ended.exit_code,
        signal=ended.signal,
        last_lines=() if state is RunState.SUCCEEDED else last_lines,
    )


def faulty(fault: Fault, ended: UnitEnded | None, last_lines: tuple[str, ...]) -> Outcome:
    """The outcome of a run that another than its deciding unit brought down."""
    is_ours = ended is not None and ended.cause in _NOBODYS_FAULT
    return Outcome(
        state=RunState.ERROR if is_ours else RunState.FAILED,
        reason=fault.reason,
        cause=fault.cause,
        unit=fault.unit,
        exit_code=ended.exit_code if ended else None,
        signal=ended.signal if ended else None,
        last_lines=last_lines,
    )


def overdue(state: RunState, limit: timedelta, trouble: str = "") -> Outcome:
    """The outcome of a run whose state lasted too long, and what kept it from going on."""
    if state is RunState.SUBMITTED:
        reason = f"no runtime took it up within {describe(limit)}; see `anubis doctor`"
    else:
        reason = f"still {state} after {describe(limit)}: limits.{state.value.lower()} passed"
    reason += f"; {trouble}" if trouble else ""
    return Outcome(state=RunState.ERROR, reason=reason, cause=Cause.OVERDUE)


_NOBODYS_FAULT = frozenset(
    {
        EndCause.NO_CAPACITY,
        EndCause.IMAGE_UNAVAILABLE,
        EndCause.NOT_BROUGHT,
        EndCause.EVICTED,
        EndCause.LOST,
    }
)
"""Ends that say nothing of the benchmark."""

_STATES: Mapping[EndCause, RunState] = {
    EndCause.EXITED: RunState.FAILED,  # unless the deciding unit did so with code 0
    EndCause.CANCELED: RunState.CANCELED,
    EndCause.DISMISSED: RunState.ERROR,
    EndCause.TIMED_OUT: RunState.FAILED,
    EndCause.OUTPUT_LIMIT: RunState.FAILED,
    EndCause.OUT_OF_MEMORY: RunState.FAILED,
    EndCause.NOT_STARTED: RunState.FAILED,
    EndCause.NO_CAPACITY: RunState.ERROR,
    EndCause.IMAGE_UNAVAILABLE: RunState.ERROR,
    EndCause.DATA_INVALID: RunState.FAILED,  # what the descriptor says is not so
    EndCause.NOT_BROUGHT: RunState.ERROR,
    EndCause.EVICTED: RunState.ERROR,
    EndCause.LOST: RunState.ERROR,
}
