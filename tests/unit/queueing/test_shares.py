"""What people have used: seconds that fade."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from anubis.domain.run import Run
from anubis.stages.queueing import shares
from anubis.stages.queueing.shares import EXPECTED, HALF_LIFE, Shares
from anubis.testing import builders
from anubis.testing.clock import NOON

SECOND = timedelta(seconds=1)


def ended(number: int, began: datetime, seconds: float, user: str = "ann") -> Run:
    return dataclasses.replace(
        builders.a_run(number),
        submitter=user,
        started_at=began,
        ended_at=began + seconds * SECOND,
    )


def test_a_second_counts_half_an_hour_later_than_now() -> None:
    used = Shares()
    used.add(ended(0, NOON - 10 * SECOND, 10), NOON)
    now = used.at(NOON, {"ann"})["ann"]
    later = used.at(NOON + HALF_LIFE, {"ann"})["ann"]
    assert now == pytest.approx(10, rel=0.01)
    assert later == pytest.approx(now / 2)


def test_nobody_has_used_anything_in_the_beginning() -> None:
    assert Shares().at(NOON, {"ann"}) == {"ann": 0.0}


def test_a_run_under_way_counts_what_is_expected_or_what_it_has_taken() -> None:
    young = dataclasses.replace(builders.a_run(0), submitter="ann", started_at=NOON - SECOND)
    old = dataclasses.replace(young, started_at=NOON - 600 * SECOND)
    claimed = dataclasses.replace(young, started_at=None)
    for run, counts in [(young, EXPECTED), (claimed, EXPECTED), (old, 600)]:
        assert Shares().at(NOON, {"ann"}, [run])["ann"] == pytest.approx(counts, rel=0.1)


def test_a_run_that_never_started_costs_nothing() -> None:
    used = Shares()
    used.add(dataclasses.replace(builders.a_run(0), submitter="ann", ended_at=NOON), NOON)
    assert used.at(NOON, {"ann"}) == {"ann": 0.0}


@given(some.lists(some.tuples(some.integers(0, 86_400), some.integers(0, 9999)), max_size=8))
def test_usage_does_not_depend_on_when_or_in_which_order_it_was_noted(
    spans: list[tuple[int, int]],
) -> None:
    """After a restart the newest runs are noted all at once."""
    end = NOON + timedelta(days=3)
    runs = [ended(n, NOON + start * SECOND, length) for n, (start, length) in enumerate(spans)]
    at_once, one_by_one = Shares(), Shares()
    for run in reversed(runs):
        at_once.add(run, end)
    for run in sorted(runs, key=lambda run: run.ended_at or end):
        one_by_one.add(run, run.ended_at or end)
    assert at_once.at(end, {"ann"})["ann"] == pytest.approx(
        one_by_one.at(end, {"ann"})["ann"], abs=1e-6
    )


def test_a_clock_that_was_set_back_gives_nobody_credit() -> None:
    used = Shares()
    used.add(ended(0, NOON + 100 * SECOND, 50), NOON)
    used.add(ended(1, NOON, -50), NOON)
    assert used.at(NOON - HALF_LIFE, {"ann"})["ann"] >= 0


def test_people_who_have_long_gone_are_forgotten() -> None:
    used = Shares()
    for number in range(1000):
        used.add(ended(number, NOON, 1, f"user {number}"), NOON + SECOND)
    much_later = NOON + timedelta(days=7)
    used.add(ended(0, much_later, 1), much_later + SECOND)
    assert len(used._used) == 1


def test_time_counts_as_seconds_when_it_has_just_been_used() -> None:
    assert shares.counted(NOON, NOON + 30 * SECOND, NOON + 30 * SECOND) == pytest.approx(
        30, rel=0.01
    )
