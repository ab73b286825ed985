"""What a sequence of answers means, whatever the sequence."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from anubis.adapters.engine.probing import Liveness, Readiness
from anubis.domain.observation import Condition, UnitReady, UnitSilent, UnitUnready
from anubis.domain.plan import Probe, ProbeKind
from anubis.testing.clock import NOON

ANSWERS = st.lists(st.sampled_from(["", "", "refused", "answered 503"]), max_size=40)
THRESHOLD = st.integers(min_value=1, max_value=4)


def a_probe(success: int = 1, failure: int = 3) -> Probe:
    return Probe(kind=ProbeKind.TCP, port=80, success_threshold=success, failure_threshold=failure)


def told(answers: list[str], probe: Probe) -> list[Condition | None]:
    """What is told after each answer."""
    tally = Readiness("server", probe)
    return [tally.note(answer, NOON) for answer in answers]


def words(answers: list[str], probe: Probe) -> list[str]:
    """The same in short: nothing, ``ready`` or the failure."""
    return [
        "-" if c is None else "ready" if isinstance(c, UnitReady) else getattr(c, "message", "")
        for c in told(answers, probe)
    ]


def test_a_unit_is_ready_with_its_first_good_answer() -> None:
    assert words(["", "", ""], a_probe()) == ["ready", "-", "-"]


def test_a_unit_may_have_to_answer_well_several_times_in_a_row() -> None:
    answers = ["", "refused", "", "", "", ""]
    assert words(answers, a_probe(success=3)) == ["-", "refused", "-", "-", "ready", "-"]


def test_a_failure_is_told_at_once_and_again_when_it_changes() -> None:
    answers = ["refused", "refused", "answered 503", "answered 503", "refused", ""]
    expected = ["refused", "-", "answered 503", "-", "refused", "ready"]
    assert words(answers, a_probe()) == expected


def test_a_ready_unit_may_fail_less_often_than_its_threshold() -> None:
    answers = ["", "refused", "refused", "", "refused", "refused", "refused", "refused", ""]
    expected = ["ready", "-", "-", "-", "-", "-", "refused", "-", "ready"]
    assert words(answers, a_probe(failure=3)) == expected


@given(answers=ANSWERS, success=THRESHOLD, failure=THRESHOLD)
def test_it_is_ready_exactly_while_the_runs_of_answers_say_so(
    answers: list[str], success: int, failure: int
) -> None:
    """Ready after ``success`` good ones in a row, until ``failure`` bad ones in a row."""
    is_ready = False
    for count, condition in enumerate(told(answers, a_probe(success, failure)), start=1):
        was_ready = is_ready
        last, before = bool(answers[count - 1]), map(bool, reversed(answers[:count]))
        in_a_row = len(list(itertools.takewhile(last.__eq__, before)))
        if answers[count - 1] and in_a_row >= failure:
            is_ready = False
        elif not answers[count - 1] and in_a_row >= success:
            is_ready = True
        assert isinstance(condition, UnitReady) == (is_ready and not was_ready)
        if was_ready and not is_ready:
            assert isinstance(condition, UnitUnready)


@given(answers=ANSWERS, success=THRESHOLD, failure=THRESHOLD)
def test_nothing_is_told_twice_in_a_row(answers: list[str], success: int, failure: int) -> None:
    said = [word for word in words(answers, a_probe(success, failure)) if word != "-"]
    assert all(one != other for one, other in itertools.pairwise(said))


@given(answers=ANSWERS, failure=THRESHOLD)
def test_a_unit_is_silent_when_it_failed_as_often_in_a_row_as_it_may(
    answers: list[str], failure: int
) -> None:
    tally = Liveness("server", a_probe(failure=failure))
    in_a_row = 0
    for answer in answers:
        in_a_row = in_a_row + 1 if answer else 0
        condition = tally.note(answer, NOON)
        if in_a_row < failure:
            assert condition is None
        else:
            assert condition == UnitSilent(unit="server", at=NOON, message=answer)
            return
