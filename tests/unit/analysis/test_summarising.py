"""Summaries agree with NumPy, with the running statistics, and with what is known by hand."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anubis.domain.metric import MetricKey, MetricSource
from anubis.stages.analysis.statistics import summarising
from anubis.stages.collection.running import MOST_KEPT, RunningSeries

KEY = MetricKey(unit="u", name="m", source=MetricSource.PATTERN)
finite = st.floats(-1e9, 1e9)
series = st.lists(finite, min_size=1, max_size=50)


@given(series)
def test_percentiles_and_moments_are_those_of_numpy(values: list[float]) -> None:
    result = summarising.describe(values)

    expected = np.quantile(values, [0.5, 0.9, 0.95, 0.99])
    found = [result.median, result.p90, result.p95, result.p99]
    assert found == pytest.approx(list(expected), rel=1e-9, abs=1e-6)
    assert result.mean == pytest.approx(float(np.mean(values)), rel=1e-9, abs=1e-6)
    assert (result.minimum, result.maximum) == (min(values), max(values))
    assert (result.first, result.last, result.count) == (values[0], values[-1], len(values))
    if len(values) > 1:
        assert result.std == pytest.approx(float(np.std(values, ddof=1)), rel=1e-9, abs=1e-6)


def test_long_and_short_series_are_summed_up_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [float(number * 7919 % 1_000) for number in range(1_500)]
    long = summarising.describe(values)
    monkeypatch.setattr(summarising, "FEW", 10_000)

    short = summarising.describe(values)

    assert list(dataclasses.astuple(long)) == pytest.approx(list(dataclasses.astuple(short)))


def test_one_value_has_no_spread() -> None:
    result = summarising.describe([3.0])

    assert (result.std, result.median, result.p99) == (0.0, 3.0, 3.0)


def test_an_empty_series_is_an_error() -> None:
    with pytest.raises(ValueError, match="empty"):
        summarising.describe([])


def test_short_series_do_without_numpy() -> None:
    program = (
        "import sys; from anubis.stages.analysis.statistics import summarising;"
        "summarising.describe([1.0, 2.0]); sys.exit('numpy' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@given(st.lists(series, min_size=1, max_size=10))
def test_running_statistics_equal_those_of_the_whole(batches: list[list[float]]) -> None:
    running = RunningSeries(KEY, "s")
    for batch in batches:
        running.add(batch)
    everything = [value for batch in batches for value in batch]

    live = running.summary()
    whole = summarising.summarise(KEY, "s", everything)

    assert (live.count, live.first, live.last) == (whole.count, whole.first, whole.last)
    assert (live.minimum, live.maximum) == (whole.minimum, whole.maximum)
    assert (live.median, live.p90, live.p95, live.p99) == (
        whole.median,
        whole.p90,
        whole.p95,
        whole.p99,
    )
    assert live.mean == pytest.approx(whole.mean, rel=1e-9, abs=1e-6)
    assert live.std == pytest.approx(whole.std, rel=1e-6, abs=1e-3)


def test_live_percentiles_of_a_long_series_are_close_and_bounded() -> None:
    running = RunningSeries(KEY, "")
    for start in range(0, 1_000_000, 997):
        running.add([float(value * 7919 % 1_000_003) for value in range(start, start + 997)])

    live = running.summary()

    assert not running.keeps_everything
    assert len(running._kept) <= MOST_KEPT
    assert live.median == pytest.approx(500_000, rel=0.1)
    assert live.p90 == pytest.approx(900_000, rel=0.1)


def test_values_at_the_edge_of_floats_do_not_break_the_statistics() -> None:
    running = RunningSeries(KEY, "")
    running.add([1.7e308, 1.7e308, -1.7e308])
    running.add([1.7e308, 1.7e308])

    assert running.summary().maximum == 1.7e308
    assert summarising.describe([1.7e308, 1.7e308, -1.7e308]).minimum == -1.7e308
