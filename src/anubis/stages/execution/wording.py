"""How units end, and how long things last, as people say it."""

from __future__ import annotations

import signal
from collections.abc import Mapping
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
    words = _WORDS.get(ended.cause)
    return f"{ended.unit} {_described(ended, plan) if words is None else words + ended.message}"


_WORDS: Mapping[EndCause, str] = {
    EndCause.CANCELED: "was stopped on request",
    EndCause.DISMISSED: "was stopped because it was no longer needed",
    EndCause.NOT_STARTED: "could not be started: ",
    EndCause.IMAGE_UNAVAILABLE: "has no image: ",
    EndCause.DATA_INVALID: "cannot have what it needs: ",
    EndCause.NOT_BROUGHT: "cannot have what it needs: ",
    EndCause.EVICTED: "was put off its machine: ",
    EndCause.LOST: "was lost: ",
}
"""Followed by what the engine said, if it said anything."""


def _described(ended: UnitEnded, plan: Plan) -> str:
    """The ends that need the plan or numbers to be told."""
    match ended.cause:
        case EndCause.TIMED_OUT:
            limit = describe(plan.limits.running)
            return f"ran longer than limits.running = {limit} and was stopped"
        case EndCause.OUTPUT_LIMIT:
            most = size.spoken(plan.limits.output_bytes)
            return f"wrote more than limits.output_size = {most} and was stopped"
        case EndCause.OUT_OF_MEMORY:
            return f"ran out of memory{_memory(plan, ended.unit)} and was killed"
        case EndCause.NO_CAPACITY:
            limit = describe(plan.limits.capacity)
            return f"found no room within limits.capacity = {limit}: {ended.message}"
        case _:
            return _exit(ended)


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
