"""The commands, called in this process over memory adapters."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import click
import pytest

from anubis.domain.errors import NotPossible, RunAmbiguous, RunNotFound, UserError
from anubis.domain.metric import MetricKey, MetricSource
from anubis.domain.run import RunState
from anubis.entrypoints.cli import session
from anubis.ports.run_store import Step
from anubis.testing import builders
from anubis.testing.clock import NOON

from .conftest import World

Out = pytest.CaptureFixture[bytes]
LOSS = MetricKey(unit="benchmark", name="loss", source=MetricSource.PATTERN)


@pytest.fixture
def out(capfdbinary: pytest.CaptureFixture[bytes]) -> pytest.CaptureFixture[bytes]:
    return capfdbinary


def text(out: Out) -> str:
    return out.readouterr().out.decode()


def test_status_shows_the_last_run_when_none_is_named(world: World, out: Out) -> None:
    world.add(builders.a_run(1))
    newest = world.add(builders.a_run(2))
    assert world.call("status") == 0
    assert newest in text(out)


def test_a_command_that_reads_wakes_the_runtime_only_for_active_runs(
    world: World, out: Out
) -> None:
    run_id = world.add(builders.a_run(1))
    world.call("status")
    assert world.woken == 1
    world.finish(run_id)
    world.call("status")
    assert world.woken == 1


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (RunState.SUCCEEDED, 0),
        (RunState.FAILED, 1),
        (RunState.ERROR, 3),
        (RunState.CANCELED, 130),
    ],
)
def test_the_exit_code_of_watch_tells_how_the_run_ended(
    world: World, out: Out, end: RunState, code: int
) -> None:
    world.finish(world.add(builders.a_run(1)), end)
    assert world.call("watch") == code
    assert f"{end}  resnet" in text(out)


def test_watch_prints_one_json_line_per_change(world: World, out: Out) -> None:
    world.finish(world.add(builders.a_run(1)))
    world.call("watch", "--json")
    [line] = text(out).splitlines()
    read = json.loads(line)
    assert read["run"]["state"] == "SUCCEEDED"
    assert [event["number"] for event in read["events"]] == list(range(1, 8))


def test_a_prefix_names_a_run_and_an_ambiguous_one_is_refused(world: World, out: Out) -> None:
    one, two = world.add(builders.a_run(1)), world.add(builders.a_run(2))
    assert world.call("status", two[:-1]) == 0
    with pytest.raises(RunAmbiguous, match=one):
        world.call("status", one[:6])
    with pytest.raises(RunNotFound):
        world.call("status", "ffff")


def test_list_filters_and_pages(world: World, out: Out) -> None:
    ids = [world.add(builders.a_run(n, labels={"team": "a" if n % 2 else "b"})) for n in range(6)]
    world.finish(ids[0])
    world.call("list", "--ids", "--label", "team=a")
    assert text(out).split() == [ids[5], ids[3], ids[1]]
    world.call("list", "--ids", "--limit", "2", "--before", ids[3])
    assert text(out).split() == [ids[2], ids[1]]
    world.call("list", "--json", "--state", "succeeded")
    assert [run["id"] for run in json.loads(text(out))["runs"]] == [ids[0]]
    world.call("list", "--benchmark", "nothing")
    assert text(out) == "no runs\n"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--since", "90m"], [2, 1]),
        (["--since", "2h", "--until", "1h"], [1]),
        (["--until", "1w"], []),
        (["--since", "2000-01-01"], [2, 1, 0]),
        (["--until", NOON.isoformat(), "--since", (NOON - timedelta(hours=2)).isoformat()], [1]),
        (["--since", "999999w"], [2, 1, 0]),
    ],
)
def test_list_finds_runs_by_the_time_of_their_submission(
    world: World, out: Out, words: list[str], found: list[int]
) -> None:
    ages = (timedelta(days=1), timedelta(minutes=80), timedelta())
    ids = [world.add(builders.a_run(number, at=NOON - age)) for number, age in enumerate(ages)]
    assert world.call("list", "--ids", *words) == 0
    assert text(out).split() == [ids[number] for number in found]


@pytest.mark.parametrize("text", ["yesterday", "-3d", "3y", "2026-13-01", "", "9999999d"])
def test_a_moment_that_is_none_is_answered_with_what_was_expected(world: World, text: str) -> None:
    with pytest.raises(click.BadParameter, match="expected a date"):
        world.call("list", "--since", text)


def test_list_finds_the_runs_of_one_user(world: World, out: Out) -> None:
    world.add(builders.a_run(1, submitter="ann"))
    theirs = world.add(builders.a_run(2, submitter="bob"))
    world.call("list", "--ids", "--user", "bob")
    assert text(out).split() == [theirs]


def test_the_last_action_is_ones_own(world: World, out: Out) -> None:
    mine = world.add(builders.a_run(1, submitter=session.person()))
    world.add(builders.a_run(2, submitter="bob"))
    world.call("history", "--limit", "1", "--ids")
    assert text(out) == f"{mine}\n"


def test_a_label_without_a_value_is_bad_usage(world: World) -> None:
    with pytest.raises(click.BadParameter, match="expected key=value"):
        world.call("list", "--label", "team")


def test_logs_are_byte_exact(world: World, out: Out) -> None:
    run_id = world.add(builders.a_run(1))
    world.write(run_id, [("stdout", b"a\xff\x00\n"), ("stderr", b"e\r\n"), ("stdout", b"end")])
    world.finish(run_id)
    world.call("logs")
    assert out.readouterr().out == b"a\xff\x00\ne\r\nend"
    world.call("logs", "--stream", "stdout", "-f")
    assert out.readouterr().out == b"a\xff\x00\nend"
    world.call("logs", "--grep", "e", "--tail", "1")
    assert out.readouterr().out == b"end"


def test_time_stamps_stand_at_the_start_of_lines_only(world: World, out: Out) -> None:
    run_id = world.add(builders.a_run(1))
    world.write(run_id, [("stdout", b"long "), ("stdout", b"line\n"), ("stdout", b"next\n")])
    world.call("logs", "--timestamps")
    stamp = "2024-05-17T12:00:00.000000Z"
    assert text(out) == f"{stamp} long line\n{stamp} next\n"


def test_names_say_who_wrote_each_line(world: World, out: Out) -> None:
    run_id = world.add(builders.a_run(1))
    pieces = [("server", "stdout", b"lis"), ("server", "stdout", b"tening\n")]
    world.write_as(run_id, [*pieces, ("client", "stderr", b"asks\n")])
    world.call("logs", "--names")
    assert text(out) == "server: listening\nclient: asks\n"
    world.call("logs", "--names", "--timestamps", "--unit", "client")
    assert text(out) == "2024-05-17T12:00:00.000000Z client: asks\n"


def test_logs_as_json_are_one_object_per_line(world: World, out: Out) -> None:
    run_id = world.add(builders.a_run(1))
    world.write(run_id, [("stderr", b"\xfe\n")])
    world.call("logs", "--json")
    [line] = map(json.loads, text(out).splitlines())
    assert (line["number"], line["stream"], line["text"]) == (1, "stderr", "\ufffd")


def with_metrics(world: World) -> None:
    run_id = world.add(builders.a_run(1))
    summary = builders.a_summary("loss", values=(3.0, 1.0, 2.0))
    world.move(run_id, step=Step(run_id=run_id, summaries=[summary]))

    async def append() -> None:
        writer = await world.series.writer(run_id)
        await writer.append({LOSS: ([1, 2, 3], [3.0, 1.0, 2.0])})

    world.do(append)


def test_metrics_have_a_trend_and_every_sample_as_csv(world: World, out: Out) -> None:
    with_metrics(world)
    world.call("metrics")
    assert text(out).splitlines()[1].split() == ["loss", "3", "2", "2", "1", "3", "2", "█▁▅"]
    world.call("metrics", "--csv")
    header, *rows = text(out).splitlines()
    assert header == "at,unit,source,metric,units,value"
    assert rows[0] == "1970-01-01T00:00:00.000001Z,benchmark,pattern,loss,,3.0"
    assert len(rows) == 3
    world.call("metrics", "--json")
    assert json.loads(text(out))["metrics"][0]["last"] == 2.0


@pytest.mark.parametrize("how", [[], ["--csv"]])
def test_an_unknown_metric_is_answered_with_the_nearest(world: World, how: list[str]) -> None:
    with_metrics(world)
    with pytest.raises(UserError, match="did you mean 'loss'"):
        world.call("metrics", "--series", "los", *how)


def test_results_end_with_the_output_of_a_good_run(world: World, out: Out) -> None:
    run_id = world.add(builders.a_run(1))
    world.write(run_id, [("stdout", b"one\n"), ("stdout", b"two\n")])
    world.finish(run_id)
    world.call("results", "--lines", "1")
    page = text(out)
    assert "│ two\n" in page
    assert "one" not in page


def test_the_descriptor_is_given_back_byte_for_byte(world: World, out: Out, tmp_path: Path) -> None:
    document = builders.a_document(b"\xff not toml\r\n")
    world.add(builders.a_run(1, document=document), document)
    world.call("show-descriptor")
    assert out.readouterr().out == b"\xff not toml\r\n"
    target = tmp_path / "copy.toml"
    world.call("show-descriptor", "--write", str(target))
    assert target.read_bytes() == b"\xff not toml\r\n"
    with pytest.raises(UserError, match="not overwritten"):
        world.call("show-descriptor", "--write", str(target))


def test_history_has_this_persons_runs_oldest_first(
    world: World, out: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "user")
    ids = [world.add(builders.a_run(n)) for n in range(3)]
    world.call("history", "--limit", "2")
    assert [line.split(" : ")[0] for line in text(out).splitlines()] == ids[1:]
    monkeypatch.setenv("LOGNAME", "somebody")
    world.call("history")
    assert text(out) == ""


def test_cancel_is_asked_once_and_refused_after_the_end(world: World, out: Out) -> None:
    run_id = world.add(builders.a_run(1))
    world.call("cancel", run_id)
    assert text(out) == f"{run_id} is being canceled\n"
    assert world.woken == 1
    ended = world.add(builders.a_run(2))
    world.finish(ended)
    with pytest.raises(NotPossible):
        world.call("cancel", ended)


@pytest.mark.parametrize("verb", ["cancel", "purge"])
def test_what_destroys_must_be_named(world: World, verb: str) -> None:
    with pytest.raises(click.MissingParameter):
        world.call(verb)


def test_purge_forgets_everything(world: World, out: Out) -> None:
    run_id = world.add(builders.a_run(1))
    world.write(run_id, [("stdout", b"one\n")])
    world.finish(run_id)
    world.call("purge", run_id)
    assert text(out) == f"{run_id} purged\n"
    with pytest.raises(RunNotFound):
        world.call("status")
    with pytest.raises(RunNotFound):
        world.call("logs", run_id)


def test_a_word_that_is_no_command_gets_a_hint(world: World) -> None:
    with pytest.raises(click.UsageError, match="did you mean 'status'"):
        world.call("statsu")
    with pytest.raises(click.UsageError, match="anubis run bench"):
        world.call("bench.toml")


def test_csv_and_json_exclude_each_other(world: World) -> None:
    with pytest.raises(click.UsageError, match="exclude each other"):
        world.call("metrics", "--csv", "--json")


def test_noon_is_a_fixed_moment() -> None:
    """Expected time stamps in this file rely on it."""
    assert NOON.isoformat() == "2024-05-17T12:00:00+00:00"
