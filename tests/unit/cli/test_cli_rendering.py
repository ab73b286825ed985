"""Cards, lists, reports and frames: values in, text out."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
from datetime import timedelta

import click
import pytest
from rich.console import Console

from anubis.domain.event import Event, EventKind
from anubis.domain.logline import LogLine
from anubis.domain.metric import MetricKey, MetricSource, Summary
from anubis.domain.observation import Stream
from anubis.domain.problem import Problem, Severity
from anubis.domain.run import Run, RunState
from anubis.entrypoints.cli.checks.finding import bad, doubtful, good
from anubis.entrypoints.cli.rendering import (
    cards,
    findings,
    listings,
    live,
    measurements,
    output,
    problems,
    states,
    text,
)
from anubis.entrypoints.cli.rendering.problems import Verdict
from anubis.entrypoints.cli.rendering.story import Story
from anubis.stages.presentation import samples, shapes
from anubis.testing import builders
from anubis.testing.clock import NOON

LATER = NOON + timedelta(seconds=12)


def a_run(state: RunState = RunState.RUNNING, reason: str = "") -> Run:
    return dataclasses.replace(
        builders.a_run(labels={"team": "vision"}),
        state=state,
        started_at=NOON + timedelta(seconds=2),
        ended_at=LATER if state.is_terminal else None,
        outcome=builders.an_outcome(state, reason=reason) if state.is_terminal else None,
    )


def an_event(number: int, kind: EventKind = EventKind.STATE, to: str = "RUNNING") -> Event:
    return Event(
        run_id=builders.a_run_id(),
        number=number,
        sequence=number,
        at=NOON,
        kind=kind,
        message="m",
        data={"to": to},
    )


CPU = dataclasses.replace(builders.a_summary("memory", source=MetricSource.RESOURCE), units="B")


def test_a_status_card_tells_state_facts_and_story() -> None:
    page = click.unstyle(cards.status(a_run(), [an_event(1)], LATER))
    assert page.startswith("● RUNNING  resnet for 10.0 s\n")
    assert builders.a_run_id() in page
    assert "team=vision" in page
    assert "RUNNING    m\n" in page
    assert "anubis watch" in page
    assert "ended" not in page


def test_a_failed_run_shows_why_and_its_last_lines() -> None:
    page = click.unstyle(cards.results(a_run(RunState.FAILED, "exit code 1"), [], LATER))
    assert page.startswith("✘ FAILED  resnet in 10.0 s\n  exit code 1\n")
    assert "│ ValueError: no\n" in page
    assert "no metrics were reported" in page
    assert f"anubis logs {states.short(builders.a_run_id())}" in page


def test_what_a_program_wrote_cannot_take_over_the_terminal() -> None:
    run = a_run(RunState.FAILED)
    assert run.outcome is not None
    evil = dataclasses.replace(run.outcome, last_lines=("\x1b[2Jgone",), reason="\x1b]0;t\x07")
    page = cards.results(dataclasses.replace(run, outcome=evil), [], LATER)
    assert "\x1b[2J" not in page
    assert "\x07" not in page


def test_results_repeat_the_warnings_and_leave_out_what_was_never_used() -> None:
    idle = builders.a_summary("read_bytes", source=MetricSource.RESOURCE, values=(0.0, 0.0))
    zero = builders.a_summary("errors", values=(0.0, 0.0))
    warning = an_event(1, EventKind.WARNING)
    page = click.unstyle(cards.results(a_run(), [idle, zero, CPU], LATER, [warning]))
    assert "\n  ! m\n" in page
    assert "read_bytes" not in page
    assert "errors" in page


def test_the_users_metrics_come_before_the_machines() -> None:
    table = click.unstyle(measurements.metrics_table([CPU, builders.a_summary("loss")]))
    header, first, second = table.splitlines()
    assert header.split() == ["metric", "count", "mean", "median", "min", "max", "last"]
    assert first.split() == ["loss", "4", "2.500", "3", "1", "4", "1"]
    assert second.split()[:2] == ["memory", "4"]


def test_units_of_a_plan_are_named_where_there_are_several() -> None:
    two = [builders.a_summary("loss", unit="server"), builders.a_summary("loss", unit="client")]
    table = measurements.metrics_table(two)
    assert "server/loss" in table
    assert "client/loss" in table


@pytest.mark.parametrize("state", RunState)
def test_every_state_has_a_headline(state: RunState) -> None:
    assert f"{state}  resnet" in click.unstyle(states.headline(a_run(state), LATER))


def test_a_list_has_one_line_per_run() -> None:
    runs = [a_run(RunState.SUCCEEDED), builders.a_run(1)]
    table = click.unstyle(listings.runs_table(runs, LATER, width=None))
    header, first, second = table.splitlines()
    assert header.split()[0] == "run"
    assert first.startswith(runs[0].id)
    assert "✔ SUCCEEDED" in first
    assert "○ SUBMITTED" in second
    assert listings.runs_table([], LATER, width=None) == "no runs\n"


def test_a_list_says_whose_runs_they_are_unless_all_are_mine() -> None:
    runs = [builders.a_run(1, submitter="ann"), builders.a_run(2, submitter="bob")]
    header, first, second = listings.runs_table(runs, LATER, width=None, me="ann").splitlines()
    assert click.unstyle(header).endswith("user")
    assert (first.split()[-1], second.split()[-1]) == ("ann", "bob")
    assert "user" not in listings.runs_table(runs[:1], LATER, width=None, me="ann")
    assert "bob" in listings.runs_table(runs[1:], LATER, width=None, me="ann")


def test_a_list_on_a_terminal_fits_whatever_the_names() -> None:
    run = dataclasses.replace(a_run(RunState.SUCCEEDED), benchmark="模型-" * 40)
    for line in listings.runs_table([run], LATER + timedelta(hours=47), width=80).splitlines():
        assert text.width(click.unstyle(line)) <= 80


def test_short_ids_of_one_minute_differ() -> None:
    ids = [builders.a_run_id(number) for number in range(1000)]
    assert len({states.short(run_id) for run_id in ids}) == len(ids)


def test_history_is_written_as_the_original_wrote_it() -> None:
    document = builders.a_document(name="sub/d.toml", directory="/home/u/sub")
    line = listings.history_line(builders.a_run(), document)
    run_id, path, date = line.rstrip("\n").split(" : ")
    assert (run_id, path) == (builders.a_run_id(), "/home/u/sub/d.toml")
    assert date.startswith("2024-05-1")


def test_json_has_no_value_that_json_forbids() -> None:
    odd = dataclasses.replace(builders.a_summary(), mean=math.nan, maximum=math.inf)
    shape = shapes.snapshot(a_run(RunState.FAILED), [an_event(1)], [odd], LATER)
    read = json.loads(shapes.line(shape))
    assert read["metrics"][0]["mean"] is None
    assert read["metrics"][0]["max"] is None
    assert read["run"]["outcome"]["exit_code"] == 1
    assert read["run"]["submitted_at"] == "2024-05-17T12:00:00.000000Z"
    assert read["run"]["elapsed_seconds"] == 10.0


def test_a_story_tells_each_change_once() -> None:
    story = Story()
    first = story.lines([an_event(1)], [builders.a_summary("loss")], NOON)
    assert len(first) == 2
    assert first[1].endswith("metrics    loss=1")
    assert story.lines([], [builders.a_summary("loss")], LATER) == []
    assert len(story.lines([], [builders.a_summary("loss", values=(1.0, 7.0))], LATER)) == 1
    soon = LATER + timedelta(seconds=1)
    assert story.lines([], [builders.a_summary("loss", values=(1.0, 8.0))], soon) == []


def test_a_story_says_whose_metric_it_is_where_several_run() -> None:
    """Though only one of them has told any by now."""
    used = builders.a_summary("cpu_percent", unit="client", source=MetricSource.RESOURCE)
    told = builders.a_summary("loss", unit="server")
    [line] = Story().lines([], [used, told], NOON)
    assert line.endswith("metrics    server/loss=1")


def test_samples_are_csv_with_exact_values() -> None:
    key = MetricKey(unit="benchmark", name='a,"b"', source=MetricSource.EMITTED)
    page = "".join(samples.pages(key, "s", ([1_715_947_200_000_001], [0.1])))
    [row] = csv.reader(io.StringIO(page))
    assert row == ["2024-05-17T12:00:00.000001Z", "benchmark", "emitted", 'a,"b"', "s", "0.1"]


def test_of_a_line_that_overwrote_itself_the_end_is_shown() -> None:
    line = a_line("benchmark", b" 1%\r 99%\r100%\r\n")
    assert click.unstyle(output.excerpt([line])) == "  │ 100%\n"


def test_the_end_of_the_output_says_who_wrote_it_where_a_run_has_several_units() -> None:
    lines = [a_line("server", b"ready\n"), a_line("client", b"asks\n")]
    assert click.unstyle(output.excerpt(lines)) == "  │ server: ready\n  │ client: asks\n"


def test_after_a_run_of_several_units_the_hint_is_to_logs_with_their_names() -> None:
    run = a_run(RunState.SUCCEEDED, "client exited with code 0")
    client = builders.a_summary("loss", unit="client")
    server = builders.a_summary("loss", unit="server")
    assert "--names" not in cards.results(run, [client], LATER)
    assert "--names   everything they printed" in cards.results(run, [client, server], LATER)


def test_a_warning_that_became_the_reason_is_not_told_twice() -> None:
    run = a_run(RunState.FAILED, "server exited with code 2")
    other = dataclasses.replace(an_event(1, EventKind.WARNING), message="client wrote too much")
    early = dataclasses.replace(other, message="server exited with code 2; the run is stopped")
    page = click.unstyle(cards.results(run, [], LATER, [early, other]))
    assert page.count("server exited") == 1
    assert "! client wrote too much" in page


def a_line(unit: str, written: bytes) -> LogLine:
    return LogLine(number=1, at=NOON, unit=unit, stream=Stream.STDERR, text=written)


def test_a_verdict_counts_errors_and_old_spellings() -> None:
    error = Problem(file="f", line=1, column=2, field="a.b", found="x", expected="y")
    old = dataclasses.replace(error, severity=Severity.DEPRECATION)
    page = problems.page(Verdict(file="f", is_valid=False, problems=[error, old]))
    assert "f: not valid, 1 error" in click.unstyle(page)
    page = problems.page(Verdict(file="f", is_valid=True, problems=[old]))
    assert "f: valid, 1 old spelling" in click.unstyle(page)


def test_the_doctor_says_what_to_do() -> None:
    report = click.unstyle(
        findings.report([good("a", "fine"), doubtful("b", "slow", "go"), bad("c", "no", "mend it")])
    )
    assert "✘ fail  c" in report
    assert "→ mend it" in report
    assert report.endswith("1 to mend before benchmarks can run, 1 to think about\n")


def drawn(summaries: list[Summary], *, height: int = 24, last_line: str = "") -> str:
    trends = live.Trends()
    for summary in (summaries, [dataclasses.replace(s, last=9.0, count=9) for s in summaries]):
        trends.add(summary)
    scene = live.Scene(
        run=a_run(),
        summaries=summaries,
        trends=trends.values,
        last_line=last_line,
        notice="Ctrl-C cancels the run",
        beat=3,
        now=LATER,
    )
    console = Console(file=io.StringIO(), width=60, height=height, color_system=None)
    console.print(live.frame(scene, width=60, height=height))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_frame_shows_state_time_values_output_and_what_ctrl_c_does() -> None:
    text = drawn([builders.a_summary("loss"), CPU], last_line="epoch 3\x1b[1m " + "x" * 100)
    lines = text.splitlines()
    assert lines[0].startswith("⠸ RUNNING  resnet  0:10")
    assert lines[1].split() == ["loss", "1", "▁█"]
    assert lines[2].split()[0] == "memory"
    assert lines[3].startswith("  › epoch 3·[1m xxx")
    assert lines[-1] == "  Ctrl-C cancels the run"
    assert max(map(len, lines)) <= 60


def test_a_frame_never_grows_higher_than_the_terminal() -> None:
    many = [builders.a_summary(f"m{number}") for number in range(50)]
    text = drawn(many, height=10, last_line="x")
    assert len(text.splitlines()) <= 9
    assert "… 45 more" in text
