"""Numbers, durations and columns look as people expect."""

from __future__ import annotations

import math
from datetime import timedelta

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anubis.entrypoints.cli.rendering import columns, text
from anubis.entrypoints.cli.rendering.columns import Cell, Column
from anubis.entrypoints.cli.rendering.sparkline import sparkline
from anubis.testing.clock import NOON


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (3.0, "3"),
        (1234567.0, "1,234,567"),
        (0.123456, "0.1235"),
        (12.3456, "12.35"),
        (1234.56, "1,235"),
        (0.00012346, "0.0001235"),
        (1.5e-7, "1.500e-07"),
        (1.5e12, "1.500e+12"),
        (-0.5, "-0.5000"),
        (math.nan, "nan"),
        (math.inf, "inf"),
    ],
)
def test_numbers_have_four_digits(value: float, shown: str) -> None:
    assert text.number(value) == shown


@given(st.floats())
def test_every_number_has_a_short_text(value: float) -> None:
    assert 0 < len(text.number(value)) <= 14
    assert text.amount(value, "B")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "0.00 s"),
        (0.421, "0.42 s"),
        (9.84, "9.8 s"),
        (59.96, "1:00 min"),
        (63.0, "1:03 min"),
        (7509.0, "2:05:09 h"),
        (273_600.0, "3 d 4 h"),
        (-5.0, "0.00 s"),
    ],
)
def test_durations_are_short(seconds: float, shown: str) -> None:
    assert text.duration(timedelta(seconds=seconds)) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(3, "just now"), (45, "45 s ago"), (600, "10 min ago"), (7300, "2 h ago"), (2e5, "2 d ago")],
)
def test_ages_are_rough(seconds: float, shown: str) -> None:
    assert text.age(NOON, NOON + timedelta(seconds=seconds)) == shown


@pytest.mark.parametrize(("value", "shown"), [(0, "0 B"), (1023, "1023 B"), (5 << 20, "5 MiB")])
def test_sizes_have_a_prefix(value: int, shown: str) -> None:
    assert text.size(value) == shown


@given(st.text())
def test_shown_text_moves_no_cursor(raw: str) -> None:
    assert not any(ord(one) < 32 or 127 <= ord(one) < 160 for one in text.printable(raw))


@given(st.text(), st.integers(min_value=1, max_value=30))
def test_shortened_text_fits(raw: str, cells: int) -> None:
    assert text.width(text.shortened(raw, cells)) <= max(cells, 1)


def test_columns_are_flush_and_carry_no_trailing_spaces() -> None:
    table = columns.table(
        [Column(title="name"), Column(title="n", right=True), Column(title="what")],
        [
            [Cell(text="模型"), Cell(text="7"), Cell(text="wide")],
            [Cell(text="b", colour="red"), Cell(text="1,000"), Cell(text="")],
        ],
    )
    assert click.unstyle(table) == ("name      n  what\n模型      7  wide\nb     1,000\n")


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([], ""),
        ([math.nan], ""),
        ([1.0], "▄"),
        ([1.0, 1.0], "▄▄"),
        ([0.0, 1.0], "▁█"),
        ([-1e308, 1e308], "▁█"),
        ([float(n) for n in range(8)], "▁▂▃▄▅▆▇█"),
    ],
)
def test_a_sparkline_goes_from_low_to_high(values: list[float], drawn: str) -> None:
    assert sparkline(values) == drawn


@given(st.lists(st.floats(), max_size=200), st.integers(min_value=1, max_value=40))
def test_a_sparkline_never_fails_and_fits(values: list[float], cells: int) -> None:
    assert len(sparkline(values, cells)) <= cells
