"""However narrow a terminal is: values are whole, names are shortened, and no line wraps."""

from __future__ import annotations

import dataclasses
import io
from datetime import timedelta

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from anubis.domain.metric import MetricSource, Summary
from anubis.domain.run import RunState
from anubis.entrypoints.cli.checks.finding import bad, good
from anubis.entrypoints.cli.rendering import cards, findings, listings, live, measurements, text
from anubis.testing import builders
from anubis.testing.clock import NOON

WIDTHS = (40, 45, 60, 80, 120)
LATER = NOON + timedelta(seconds=12)
VALUES = (1234.5, 0.7654321, 12345678.0)
LONG = "validation_top5_accuracy_longest"
RUN = dataclasses.replace(
    builders.a_run(benchmark="a-benchmark-with-a-rather-long-name"),
    state=RunState.SUCCEEDED,
    started_at=NOON,
    ended_at=LATER,
    outcome=builders.an_outcome(RunState.SUCCEEDED, reason="it ended " + "and ended " * 20),
)


def summaries() -> list[Summary]:
    long = builders.a_summary(LONG, values=VALUES)
    total = builders.a_summary("cpu_seconds", source=MetricSource.RESOURCE, values=(0.004993,))
    return [
        dataclasses.replace(long, units="percent"),
        builders.a_summary("loss", values=VALUES),
        dataclasses.replace(total, units="s"),
    ]


def fits(page: str, width: int) -> bool:
    return all(text.width(line) <= width for line in click.unstyle(page).splitlines())


@pytest.mark.parametrize("width", WIDTHS)
def test_a_table_of_metrics_keeps_the_last_values_whole(width: int) -> None:
    trends = {one.key: VALUES * 20 for one in summaries()}
    page = click.unstyle(measurements.metrics_table(summaries(), trends, "", width))
    assert fits(page, width)
    rows = page.splitlines()
    at = rows[0].index("last") + len("last")
    assert [row[:at].split()[-1] for row in rows[1:3]] == ["12,345,678"] * 2
    assert ("trend" in rows[0]) == (width == 120)
    assert ("…" in page) == (width < 120)


def test_columns_leave_from_the_least_important_on() -> None:
    titles = [
        measurements.metrics_table(summaries(), None, "", width).splitlines()[0]
        for width in range(120, 30, -1)
    ]
    seen = list(dict.fromkeys(tuple(click.unstyle(title).split()[1:]) for title in titles))
    whole = ["count", "mean", "median", "min", "max", "last"]
    assert seen[0] == tuple(whole)
    for gone, left in zip(["median", "count", "min", "max", "mean"], seen[1:], strict=True):
        whole.remove(gone)
        assert left == tuple(whole)


def test_without_a_terminal_everything_is_printed() -> None:
    trends = {one.key: VALUES for one in summaries()}
    page = measurements.metrics_table(summaries(), trends)
    assert f"{LONG} (percent)" in page
    assert "trend" in page


@pytest.mark.parametrize("width", WIDTHS)
def test_results_status_lists_and_the_doctors_report_fit(width: int) -> None:
    report = findings.report(
        [good("cpu governor", "a b c " * 20), bad("store", "/" + "long" * 30, "move it away " * 9)],
        width,
    )
    assert fits(report, width)
    assert "".join(report.split()).count("long") == 30
    assert fits(cards.results(RUN, summaries(), LATER, width=width), width)
    assert fits(cards.status(RUN, [], LATER, [("machine", "cores " * 30)], width), width)
    page = listings.runs_table([RUN], LATER + timedelta(hours=47), width=width)
    assert fits(page, width)
    assert RUN.id[:18] in page
    assert "SUCCEEDED" in page


@pytest.mark.parametrize("width", WIDTHS)
def test_the_live_view_shortens_names_and_draws_no_course_without_room(width: int) -> None:
    trends = {one.key: [1.0, 2.0, 3.0] for one in summaries()[:2]}
    scene = live.Scene(
        run=dataclasses.replace(RUN, state=RunState.RUNNING, ended_at=None),
        summaries=summaries(),
        trends=trends,
        last_line="x" * 200,
        notice="canceling the run and waiting for its end; Ctrl-C again leaves at once",
        beat=0,
        now=LATER,
    )
    file = io.StringIO()
    console = Console(file=file, width=width, height=30, color_system=None)
    console.print(live.frame(scene, width=width, height=30))
    lines = file.getvalue().splitlines()
    assert all(text.width(line) <= width for line in lines)
    assert lines[1].split()[:2] == ["loss", "12,345,678"]
    assert "12,345,678" in lines[2]
    assert lines[3].split() == ["cpu_seconds", "0.004993"]
    assert ("…" in lines[2], "█" in lines[2]) == (width < 60, width >= 80)
    assert " ".join(" ".join(lines[5:]).split()).endswith("leaves at once")


@given(st.text(alphabet="ab 模型/", max_size=80), st.integers(min_value=8, max_value=40))
def test_broken_lines_fit_and_lose_nothing(raw: str, cells: int) -> None:
    lines = text.hanging(raw, cells, after="> ", indent="  ")
    assert all(text.width(line) <= cells for line in lines)
    assert "".join("".join(lines)[1:].split()) == "".join(raw.split())


def test_metrics_are_sorted_as_people_count() -> None:
    names = ["metric10", "metric2", "metric1", "a", "metric"]
    ordered = measurements.ordered([builders.a_summary(name) for name in names])
    assert [one.key.name for one in ordered] == ["a", "metric", "metric1", "metric2", "metric10"]
    huge = "9" * 5000
    assert sorted([f"m{huge}", "m1"], key=text.naturally) == ["m1", f"m{huge}"]


def test_a_total_has_no_course_and_its_name_says_its_units() -> None:
    [total] = summaries()[2:]
    table = measurements.metrics_table([total], {total.key: [0.004993]}, indent="")
    assert click.unstyle(table).splitlines()[1].split() == ["cpu_seconds", "1", *["0.004993"] * 5]
