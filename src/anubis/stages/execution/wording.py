"""How units end, and how long things last, as people say it."""

from __future__ import annotations

import signal
from datetime import timedelta

from anubis.domain import size
from anubis.domain.observation import EndCause, UnitEnded
from anubis.domain.plan import Plan
from anubis.domain.run import Cause


def describe(duration: timedelta) -> str:
    """A duration as people say it: ``90 s``, ``15 min``, ``2 h``, ``7 days``."""
    seconds = duration.total_seconds()
    for span, word in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * span and seconds % span == 0:
            return f"{seconds / span:g} {word}"
    return f"{seconds:g} s"


def cause_of(ended: UnitEnded) -> Cause:
    """The end of a unit, as the cause of the end of its run."""
    if ended.cause is EndCause.EXITED:
        return Cause.EXITED if ended.signal is None else Cause.SIGNALED
    if ended.cause is EndCause.DISMISSED:  # by us, and nobody knows any more why
        return Cause.UNKNOWN
    return Cause(ended.cause.value)


def how_it_ended(ended: UnitEnded, plan: Plan) -> str:
    """What became of a unit, in half a sentence that begins with its name."""
    match ended.cause:
        case EndCause.EXITED:
            return f"{ended.unit} {_exit(ended)}"
        case EndCause.CANCELED:
            return f"{ended.unit} was stopped on request"
        case EndCause.DISMISSED:
            return f"{ended.unit} was stopped because it was no longer needed"
        case EndCause.TIMED_OUT:
            limit = describe(plan.limits.running)
            return f"{ended.unit} ran longer than limits.running = {limit} and was stopped"
        case EndCause.OUTPUT_LIMIT:
            most = size.spoken(plan.limits.output_bytes)
            return f"{ended.unit} wrote more than limits.output_size = {most} and was stopped"
        case EndCause.OUT_OF_MEMORY:
            return f"{ended.unit} ran out of memory{_memory(plan, ended.unit)} and was killed"
        case EndCause.NOT_STARTED:
            return f"{ended.unit} could not be started: {ended.message}"
        case EndCause.NO_CAPACITY:
            limit = describe(plan.limits.capacity)
            return f"{ended.unit} found no room within limits.capacity = {limit}: {ended.message}"
        case EndCause.IMAGE_UNAVAILABLE:
            return f"{ended.unit} has no image: {ended.message}"
        case EndCause.DATA_INVALID | EndCause.NOT_BROUGHT:
            return f"{ended.unit} cannot have what it needs: {ended.message}"
        case EndCause.EVICTED:
            return f"{ended.unit} was put off its machine: {ended.message}"
        case EndCause.LOST:
            return f"{ended.unit} was lost: {ended.message}"


def _exit(ended: UnitEnded) -> str:
    if ended.signal is not None:
        return f"was ended by {_signal(ended.signal)}"
    return f"exited with code {ended.exit_code}"


def _memory(plan: Plan, name: str) -> str:
    limit = next((u.resources.memory_bytes for u in plan.units if u.name == name), None)
    return f" (hardware.memory = {size.spoken(limit)})" if limit else ""


def _signal(number: int) -> str:
    name = signal.Signals(number).name if number in set(signal.Signals) else "an unknown signal"
    advice = " (out of memory, perhaps)" if number == signal.SIGKILL else ""
    return f"signal {number}, {name}{advice}"
