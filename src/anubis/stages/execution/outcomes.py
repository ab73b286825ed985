"""Say how a run ended, in words a person can act on. Pure: observations in, outcome out."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from datetime import timedelta

from anubis.domain.observation import EndCause, UnitEnded
from anubis.domain.plan import Plan
from anubis.domain.run import Outcome, RunState


def decide(ended: UnitEnded, plan: Plan, last_lines: tuple[str, ...]) -> Outcome:
    """Turn the end of the deciding unit into the outcome of the run."""
    state, reason = _CAUSES[ended.cause](ended, plan)
    return Outcome(
        state=state,
        reason=reason,
        unit=ended.unit,
        exit_code=ended.exit_code,
        signal=ended.signal,
        last_lines=() if state is RunState.SUCCEEDED else last_lines,
    )


def overdue(state: RunState, limit: timedelta) -> Outcome:
    """The outcome of a run whose state lasted too long, seen from outside the program."""
    if state is RunState.SUBMITTED:
        reason = f"no runtime took it up within {describe(limit)}; see `anubis doctor`"
    else:
        reason = f"still {state} after {describe(limit)}: limits.{state.value.lower()} passed"
    return Outcome(state=RunState.ERROR, reason=reason)


def describe(duration: timedelta) -> str:
    """A duration as people say it: ``90 s``, ``15 min``, ``2 h``, ``7 days``."""
    seconds = duration.total_seconds()
    for size, word in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size and seconds % size == 0:
            return f"{seconds / size:g} {word}"
    return f"{seconds:g} s"


def _exited(ended: UnitEnded, _: Plan) -> tuple[RunState, str]:
    if ended.signal is not None:
        return RunState.FAILED, f"{ended.unit} was ended by {_signal(ended.signal)}"
    if ended.exit_code == 0:
        return RunState.SUCCEEDED, f"{ended.unit} exited with code 0"
    return RunState.FAILED, f"{ended.unit} exited with code {ended.exit_code}"


def _canceled(ended: UnitEnded, _: Plan) -> tuple[RunState, str]:
    return RunState.CANCELED, f"{ended.unit} was stopped on request"


def _timed_out(ended: UnitEnded, plan: Plan) -> tuple[RunState, str]:
    limit = describe(plan.limits.running)
    return RunState.FAILED, f"{ended.unit} ran longer than limits.running = {limit} and was stopped"


def _output_limit(ended: UnitEnded, plan: Plan) -> tuple[RunState, str]:
    size = plan.limits.output_bytes
    reason = f"{ended.unit} wrote more than limits.output_size = {size} bytes and was stopped"
    return RunState.FAILED, reason


def _not_started(ended: UnitEnded, _: Plan) -> tuple[RunState, str]:
    return RunState.FAILED, f"{ended.unit} could not be started: {ended.message}"


def _lost(ended: UnitEnded, _: Plan) -> tuple[RunState, str]:
    return RunState.ERROR, f"{ended.unit} was lost: {ended.message}"


def _signal(number: int) -> str:
    name = signal.Signals(number).name if number in set(signal.Signals) else "an unknown signal"
    advice = " (out of memory, perhaps)" if number == signal.SIGKILL else ""
    return f"signal {number}, {name}{advice}"


_CAUSES: Mapping[EndCause, Callable[[UnitEnded, Plan], tuple[RunState, str]]] = {
    EndCause.EXITED: _exited,
    EndCause.CANCELED: _canceled,
    EndCause.TIMED_OUT: _timed_out,
    EndCause.OUTPUT_LIMIT: _output_limit,
    EndCause.NOT_STARTED: _not_started,
    EndCause.LOST: _lost,
}
