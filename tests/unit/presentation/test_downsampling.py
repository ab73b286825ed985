"""Downsampling: few points, and nothing that matters is lost."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anubis.stages.presentation.downsampling import downsample

FINITE = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=400)
ANYTHING = st.lists(st.floats(), max_size=400)


@given(FINITE, st.integers(4, 50))
def test_the_first_last_smallest_and_largest_stay(values: list[float], points: int) -> None:
    _, kept = downsample((range(len(values)), values), points)

    assert (kept[0], kept[-1]) == (values[0], values[-1])
    assert (min(kept), max(kept)) == (min(values), max(values))


@given(ANYTHING, st.integers(2, 50))
def test_there_are_never_more_points_than_asked_for_and_each_is_a_sample(
    values: list[float], points: int
) -> None:
    instants, kept = downsample((range(len(values)), values), points)

    assert len(instants) == len(kept) <= points
    assert list(instants) == sorted(set(instants))
    assert all(
        values[at] == value or (math.isnan(values[at]) and math.isnan(value))
        for at, value in zip(instants, kept, strict=True)
    )


@given(ANYTHING)
def test_a_short_series_stays_as_it_is(values: list[float]) -> None:
    column = (range(len(values)), values)
    assert downsample(column, max(2, len(values))) is column


def test_a_value_that_is_no_number_does_not_hide_a_peak() -> None:
    values = [0.0, math.nan, 9.0, math.nan, -9.0, math.nan, 1.0]
    _, kept = downsample((range(7), values), 4)
    assert kept == [0.0, 9.0, -9.0, 1.0]


def test_every_stretch_shows_its_own_range() -> None:
    """A wave of a hundred periods is drawn as the band that it is."""
    values = [math.sin(index / 10) for index in range(10_000)]
    _, kept = downsample((range(10_000), values), 202)

    assert len(kept) <= 202
    assert sum(value > 0.9 for value in kept) >= 90
    assert sum(value < -0.9 for value in kept) >= 90


def test_one_point_is_not_a_series() -> None:
    with pytest.raises(ValueError, match="2 points or more"):
        downsample(([1, 2], [1.0, 2.0]), 1)
