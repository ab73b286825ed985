"""What the API's shapes say comes back as the values they were made from."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anubis.client import accounts, parsing
from anubis.client.fields import Fields
from anubis.domain.demand import Demand
from anubis.domain.errors import UnexpectedAnswer
from anubis.domain.event import Event, EventKind, Scalar
from anubis.domain.problem import Problem, Severity
from anubis.domain.run import RunState
from anubis.stages.presentation import shapes
from anubis.testing import builders
from anubis.testing.clock import NOON


def wired(shape: object) -> Fields:
    """A shape after its journey as JSON."""
    return Fields(json.loads(shapes.line(shape)), "it")


def test_a_run_comes_back_whole() -> None:
    run = dataclasses.replace(
        builders.a_run(labels={"b": "2", "a": "1"}, family="f"),
        state=RunState.FAILED,
        priority=-3,
        demand=Demand(cpus=1.5, memory_bytes=7, gpus=1, exclusive=True, concurrency=2),
        started_at=NOON,
        ended_at=NOON,
        cancel_requested_at=NOON,
        outcome=builders.an_outcome(RunState.FAILED),
    )
    assert parsing.run(wired(shapes.run_shape(run, NOON))) == run


def test_an_event_comes_back_whole() -> None:
    data: dict[str, Scalar] = {"from": "QUEUED", "n": 1, "x": 0.5, "ok": True, "none": None}
    event = Event(
        run_id=builders.a_run_id(),
        number=3,
        sequence=70,
        at=NOON,
        kind=EventKind.NOTE,
        message="look",
        data=data,
    )
    assert parsing.event(wired(shapes.event_shape(event))) == event


def test_a_summary_comes_back_and_what_is_no_number_stays_none() -> None:
    summary = builders.a_summary()
    assert parsing.summary(wired(shapes.metric_shape(summary))) == summary
    odd = dataclasses.replace(summary, maximum=math.inf)
    assert math.isnan(parsing.summary(wired(shapes.metric_shape(odd))).maximum)


def test_a_problem_comes_back_whole() -> None:
    problem = Problem(
        file="f",
        line=1,
        column=2,
        field="a.b",
        found="x",
        expected="y",
        hint="z",
        severity=Severity.DEPRECATION,
    )
    assert parsing.problem(wired(shapes.problem_shape(problem))) == problem


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"text": "héllo", "newline": True, "base64": None}, "héllo\n".encode()),
        ({"text": "half", "newline": False, "base64": None}, b"half"),
        ({"text": "", "newline": True, "base64": None}, b"\n"),
        ({"text": "�", "newline": True, "base64": "/w=="}, b"\xff\n"),
        ({"text": "�", "newline": True, "base64": "/wo="}, b"\xff\n"),
    ],
)
def test_a_line_has_the_very_bytes(more: dict[str, Any], text: bytes) -> None:
    shape = {"number": 1, "at": shapes.iso(NOON), "unit": "u", "stream": "stderr", **more}
    assert parsing.line(Fields(shape, "line")).text == text


def test_samples_may_be_no_numbers() -> None:
    shape = {"at": [1, 2, 3], "values": [1, "Infinity", "NaN"]}
    instants, values = parsing.column(Fields(shape, "series"))
    assert list(instants) == [1, 2, 3]
    assert values[1] == math.inf
    assert math.isnan(values[2])


RUN = shapes.run_shape(builders.a_run(), NOON)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.sampled_from(sorted(RUN)), JSON)
def test_whatever_a_field_holds_it_is_understood_or_refused(name: str, value: object) -> None:
    """Another program on the port must not end in a traceback."""
    try:
        parsing.run(Fields({**RUN, name: value}, "run"))
    except UnexpectedAnswer as error:
        assert f"run.{name}" in str(error) or name == "outcome"  # noqa: PT017


@pytest.mark.parametrize(
    ("read", "shape", "said"),
    [
        (parsing.run, [], "run: found [], expected an object"),
        (parsing.run, {**RUN, "state": "LOST"}, "run.state: found 'LOST', expected one of SUBM"),
        (parsing.run, {**RUN, "version": True}, "run.version: found True, expected a whole"),
        (parsing.run, {**RUN, "submitted_at": "2026-01-01"}, "expected a moment with its time"),
        (parsing.run, {**RUN, "labels": {"a": 1}}, "run.labels.a: found 1, expected a string"),
        (parsing.column, {"at": [1], "values": []}, "1 instants and 0 values"),
        (parsing.column, {"at": ["1"], "values": [1]}, "the instant '1'"),
        (parsing.column, {"at": [1], "values": ["high"]}, "the value 'high'"),
        (parsing.column, {"at": [10**30], "values": [1]}, "the instant 1000"),
        (parsing.column, {"at": [1], "values": [10**400]}, "the value 1000"),
        (parsing.run, {**RUN, "priority": 10**400}, "run.priority: found 1000"),
        (parsing.run, {**RUN, "demand": {"cpus": 10**400}}, "run.demand.cpus: found 1000"),
        (parsing.run, {**RUN, "submitted_at": "9999-12-31T23:00:00-14:00"}, "a day after it"),
        (parsing.run, {**RUN, "submitted_at": "0001-01-01T00:00:00+14:00"}, "a day before"),
        (parsing.run, {**RUN, "id": "\x1b[31m"}, r"run.id: found '\x1b[31m'"),
        (parsing.run, {**RUN, "engine": "a\u202e"}, "run.engine: found"),
        (accounts.me, {"user": "a\r", "role": "admin"}, "run.user: found"),
        (accounts.health, {"status": "ok", "version": "1\x9b"}, "run.version: found"),
        (accounts.token, {"id": "\x07"}, "run.id: found"),
    ],
)
def test_what_is_wrong_is_named(read: Callable[[Fields], object], shape: object, said: str) -> None:
    with pytest.raises(UnexpectedAnswer) as refused:
        read(Fields(shape, "run"))
    assert "the service answered something unexpected" in str(refused.value)
    assert said in str(refused.value)
