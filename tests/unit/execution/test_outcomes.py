from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from anubis.domain.observation import EndCause, UnitEnded
from anubis.domain.plan import Limits, Plan, Resources, Unit
from anubis.domain.run import Cause, RunState
from anubis.stages.execution import outcomes, wording

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLAN = Plan(
    units=(Unit(name="benchmark", command=("x",), environment={}),),
    deciding="benchmark",
    limits=Limits(running=timedelta(minutes=5)),
)


def end(cause: EndCause, *, exit_code: int | None = None, signal: int | None = None) -> UnitEnded:
    return UnitEnded(
        unit="benchmark", at=NOW, cause=cause, exit_code=exit_code, signal=signal, message="why"
    )


@pytest.mark.parametrize("cause", list(EndCause))
def test_every_cause_has_an_outcome_that_names_the_unit(cause: EndCause) -> None:
    outcome = outcomes.decide(end(cause, exit_code=1), PLAN, ())
    assert outcome.state.is_terminal
    assert "benchmark" in outcome.reason


def test_only_exit_code_zero_is_a_success() -> None:
    assert outcomes.decide(end(EndCause.EXITED, exit_code=0), PLAN, ()).state is RunState.SUCCEEDED
    assert outcomes.decide(end(EndCause.EXITED, exit_code=1), PLAN, ()).state is RunState.FAILED
    assert outcomes.decide(end(EndCause.EXITED, signal=11), PLAN, ()).state is RunState.FAILED


def test_a_program_stopped_by_us_is_no_success_even_with_exit_code_zero() -> None:
    for cause in (EndCause.CANCELED, EndCause.TIMED_OUT, EndCause.OUTPUT_LIMIT):
        outcome = outcomes.decide(end(cause, exit_code=0), PLAN, ())
        assert outcome.state is not RunState.SUCCEEDED


def test_the_reason_names_the_signal_and_the_limit() -> None:
    killed = outcomes.decide(end(EndCause.EXITED, signal=9), PLAN, ())
    assert "SIGKILL" in killed.reason
    odd = outcomes.decide(end(EndCause.EXITED, signal=63), PLAN, ())
    assert "63" in odd.reason
    late = outcomes.decide(end(EndCause.TIMED_OUT, signal=15), PLAN, ())
    assert "limits.running = 5 min" in late.reason


def test_sizes_in_a_reason_are_told_as_people_write_them() -> None:
    [unit] = PLAN.units
    small = dataclasses.replace(unit, resources=Resources(memory_bytes=64 * 2**20))
    plan = dataclasses.replace(PLAN, units=(small,), limits=Limits(output_bytes=3 * 2**30))
    full = outcomes.decide(end(EndCause.OUT_OF_MEMORY, signal=9), plan, ())
    assert full.reason == "benchmark ran out of memory (hardware.memory = 64 MiB) and was killed"
    wordy = outcomes.decide(end(EndCause.OUTPUT_LIMIT), plan, ())
    assert "limits.output_size = 3 GiB" in wordy.reason


@pytest.mark.parametrize(
    ("ended", "cause"),
    [
        (end(EndCause.EXITED, exit_code=1), Cause.EXITED),
        (end(EndCause.EXITED, signal=11), Cause.SIGNALED),
        (end(EndCause.OUT_OF_MEMORY, signal=9), Cause.OUT_OF_MEMORY),
        (end(EndCause.LOST), Cause.LOST),
    ],
)
def test_programs_can_tell_outcomes_apart(ended: UnitEnded, cause: Cause) -> None:
    assert outcomes.decide(ended, PLAN, ()).cause is cause


def test_a_success_keeps_no_last_lines_and_a_failure_does() -> None:
    lines = ("a", "b")
    good, bad = end(EndCause.EXITED, exit_code=0), end(EndCause.EXITED, exit_code=1)
    assert outcomes.decide(good, PLAN, lines).last_lines == ()
    assert outcomes.decide(bad, PLAN, lines).last_lines == lines


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        (timedelta(seconds=90), "90 s"),
        (timedelta(minutes=15), "15 min"),
        (timedelta(hours=2), "2 h"),
        (timedelta(days=7), "7 days"),
        (timedelta(seconds=0.5), "0.5 s"),
    ],
)
def test_durations_are_said_as_people_say_them(duration: timedelta, words: str) -> None:
    assert wording.describe(duration) == words
