"""Health, readiness, and what Prometheus gets to read."""

from __future__ import annotations

import asyncio
import math
import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from anubis.domain.action import Action, ActionId, ActionKind
from anubis.domain.metric import MetricSource, Summary
from anubis.domain.run import Run, RunState, WorkerId
from anubis.entrypoints.api.operations import metrics, recent
from anubis.ports.run_store import Step
from anubis.stages.presentation import exposition
from anubis.testing import builders
from anubis.testing.clock import NOON

from .conftest import World

WORKER = WorkerId("worker")
RUNNING = builders.PATH_TO_SUCCESS[: builders.PATH_TO_SUCCESS.index(RunState.RUNNING) + 1]


async def families(client: httpx.AsyncClient) -> dict[str, Metric]:
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return {family.name: family for family in text_string_to_metric_families(answer.text)}


async def started(world: World, run: Run, summaries: Sequence[Summary]) -> None:
    await world.store.add(run, builders.a_document(), builders.PLAN, "submitted")
    await world.store.lease(
        WORKER, now=NOON, duration=builders.HOUR, states=[RunState.SUBMITTED], limit=1
    )
    await world.store.apply(WORKER, builders.a_step(run.id, *RUNNING))
    await world.store.apply(WORKER, Step(run_id=run.id, summaries=summaries))


async def test_a_living_service_says_so(client: httpx.AsyncClient) -> None:
    answer = (await client.get("/api/v1/health")).json()
    assert answer["status"] == "ok"
    assert answer["started_at"] == "2024-05-17T12:00:00.000000Z"


async def test_a_service_is_ready_while_its_worker_turns(
    world: World, client: httpx.AsyncClient
) -> None:
    before = await client.get("/api/v1/ready")
    world.service.pulse.turned(world.clock)
    turning = await client.get("/api/v1/ready")
    world.clock.advance(timedelta(minutes=1))
    hanging = await client.get("/api/v1/ready")
    assert [one.status_code for one in (before, turning, hanging)] == [503, 200, 503]
    assert turning.json()["ready"] is True
    failed = [check["name"] for check in hanging.json()["checks"] if not check["ok"]]
    assert failed == ["worker"]


async def test_a_service_that_stops_or_lost_its_folder_is_not_ready(
    world: World, client: httpx.AsyncClient
) -> None:
    world.service.pulse.turned(world.clock)
    world.service.broadcaster.close()
    shutil.rmtree(world.service.settings.runs)
    checks = (await client.get("/api/v1/ready")).json()["checks"]
    assert [check["name"] for check in checks if not check["ok"]] == ["worker", "engine"]


@pytest.mark.parametrize("requires_tokens", [True, False])
async def test_where_tokens_are_in_force_strangers_learn_no_paths(
    tmp_path: Path, *, requires_tokens: bool
) -> None:
    """The log has them, once for each trouble."""
    world = World(tmp_path / "home", requires_tokens=requires_tokens)
    world.service.pulse.turned(world.clock)
    shutil.rmtree(world.service.settings.runs)
    async with world.asking() as asking:
        with capture_logs() as logs:
            answers = [await asking.get("/api/v1/ready") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503] * 3
    [line] = [line for line in logs if line["event"] == "not_ready"]
    assert (line["check"], str(tmp_path) in line["detail"]) == ("engine", True)
    assert "the engine's folder cannot be written to" in answers[0].text or not requires_tokens
    assert (str(tmp_path) in answers[0].text) is not requires_tokens


async def test_a_trouble_that_comes_back_is_told_again(world: World) -> None:
    async with world.asking() as asking:
        with capture_logs() as logs:
            for _ in range(2):
                await asking.get("/api/v1/ready")
                world.service.pulse.turned(world.clock)
                await asking.get("/api/v1/ready")
                world.clock.advance(timedelta(minutes=1))
    assert [line["check"] for line in logs if line["event"] == "not_ready"] == ["worker"] * 2


async def test_the_service_counts_itself(world: World, client: httpx.AsyncClient) -> None:
    await client.get("/api/v1/me")
    await client.get("/api/v1/elsewhere")
    found = await families(client)
    requests = {
        (sample.labels["route"], sample.labels["status"]): sample.value
        for sample in found["anubis_http_requests"].samples
        if sample.name.endswith("_total")
    }
    assert requests[("/api/v1/me", "200")] == 1
    assert requests[("(none)", "404")] == 1
    for name in (
        "anubis_http_request_seconds",
        "anubis_runs",
        "anubis_queue_length",
        "anubis_leases",
        "anubis_schedules",
        "anubis_watchers",
        "anubis_event_loop_lag_seconds",
        "process_cpu_seconds",
        "process_resident_memory_bytes",
    ):
        assert name in found, name


async def test_runs_are_counted_by_state(world: World, client: httpx.AsyncClient) -> None:
    await started(world, builders.a_run(1), [])
    await world.store.add(builders.a_run(2), builders.a_document(), builders.PLAN, "submitted")
    found = await families(client)
    states = {one.labels["state"]: one.value for one in found["anubis_runs"].samples}
    assert (states["RUNNING"], states["SUBMITTED"], states["FAILED"]) == (1, 1, 0)
    assert found["anubis_queue_length"].samples[0].value == 1


async def test_metrics_of_runs_have_the_names_dashboards_look_for(
    world: World, client: httpx.AsyncClient
) -> None:
    run = builders.a_run(1, labels={"task-name": "resnet", "unit": "x"})
    await started(
        world,
        run,
        [
            builders.a_summary("train.loss", values=[1.0, 0.25]),
            builders.a_summary("acc", values=[math.nan]),
        ],
    )
    found = await families(client)
    [sample] = found["BAI_METRICS_train_loss"].samples
    assert sample.value == 0.25
    assert sample.labels == {
        "action_id": run.id,
        "client_id": run.submitter,
        "task_name": "resnet",
        "unit_": "x",
        "unit": "benchmark",
        "source": "pattern",
    }
    assert math.isnan(found["BAI_METRICS_acc"].samples[0].value)


async def test_what_the_machine_used_is_not_a_users_metric(
    world: World, client: httpx.AsyncClient
) -> None:
    await started(
        world, builders.a_run(1), [builders.a_summary("cpu", source=MetricSource.RESOURCE)]
    )
    assert not [name for name in await families(client) if name.startswith("BAI_METRICS_")]


async def test_the_client_of_an_original_submission_is_named(
    world: World, client: httpx.AsyncClient
) -> None:
    run = builders.a_run(1)
    action = Action(
        id=ActionId(run.id),
        kind=ActionKind.SUBMISSION,
        client_id="sha-of-a-machine",
        at=NOON,
        envelope="{}",
    )
    await world.actions.add(action)
    await started(world, run, [builders.a_summary()])
    [sample] = (await families(client))["BAI_METRICS_loss"].samples
    assert sample.labels["client_id"] == "sha-of-a-machine"


async def test_a_run_that_ended_is_shown_for_another_minute(
    world: World, client: httpx.AsyncClient
) -> None:
    run = builders.a_run(1)
    await started(world, run, [builders.a_summary()])
    rest = builders.PATH_TO_SUCCESS[len(RUNNING) :]
    await world.store.apply(WORKER, builders.a_step(run.id, *rest))
    assert "BAI_METRICS_loss" in await families(client)
    world.clock.advance(timedelta(seconds=50))
    assert "BAI_METRICS_loss" in await families(client)
    world.clock.advance(timedelta(seconds=11))
    assert "BAI_METRICS_loss" not in await families(client)


@given(
    names=st.lists(st.text(max_size=8), max_size=6),
    labels=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=5),
)
def test_whatever_users_call_things_prometheus_can_read_it(
    names: list[str], labels: dict[str, str]
) -> None:
    summaries = [builders.a_summary(name) for name in sorted(set(names))]
    run = builders.a_run(1, labels=labels)
    measured = exposition.Measured(run=run, client_id="me", summaries=summaries)
    text = metrics.text(exposition.series([measured]))
    read = [
        (sample.name, tuple(sorted(sample.labels.items())))
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    ]
    assert len(set(read)) == len(summaries)


async def test_a_purged_run_is_shown_no_more(world: World, client: httpx.AsyncClient) -> None:
    run = builders.a_run(1)
    await started(world, run, [builders.a_summary()])
    await world.store.apply(
        WORKER, builders.a_step(run.id, *builders.PATH_TO_SUCCESS[len(RUNNING) :])
    )
    assert "BAI_METRICS_loss" in await families(client)
    await world.store.delete(run.id)
    assert "BAI_METRICS_loss" not in await families(client)


async def test_two_who_ask_at_once_do_not_disturb_each_other(world: World) -> None:
    run = builders.a_run(1)
    await started(world, run, [builders.a_summary()])
    await world.store.apply(
        WORKER, builders.a_step(run.id, *builders.PATH_TO_SUCCESS[len(RUNNING) :])
    )
    shown: recent.Recent = world.app.state.recent
    first = asyncio.create_task(shown.measured())
    await asyncio.sleep(0)
    world.clock.advance(timedelta(seconds=61))
    assert await shown.measured() == []
    assert [measured.run.id for measured in await first] == [run.id]


async def test_strangers_may_not_read_the_figures(guarded: World) -> None:
    async with guarded.asking() as client:
        assert (await client.get("/metrics")).status_code == 401


def test_names_that_become_the_same_stay_apart() -> None:
    summaries = [builders.a_summary("a.b"), builders.a_summary("a-b"), builders.a_summary("a b")]
    measured = exposition.Measured(run=builders.a_run(1), client_id="me", summaries=summaries)
    found = list(exposition.series([measured]))
    assert {one.name for one in found} == {"BAI_METRICS_a_b"}
    assert len({tuple(sorted(one.labels.items())) for one in found}) == 3


def test_labels_are_legal_and_none_is_lost() -> None:
    labels = {"1st": "a", "__x": "b", "action-id": "c", "ü": "d", "ä": "e", "": "f"}
    run = builders.a_run(1, labels=labels)
    measured = exposition.Measured(run=run, client_id="me", summaries=[builders.a_summary()])
    [one] = exposition.series([measured])
    assert set("abcdef") <= set(one.labels.values())
    assert one.labels["action_id"] == run.id
    for name in one.labels:
        assert name.isascii()
        assert name.isidentifier()
        assert not name.startswith("__")


def test_the_number_of_series_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "MOST_SERIES", 5)
    summaries = [builders.a_summary(f"m{number}") for number in range(4)]
    measured = [
        exposition.Measured(run=builders.a_run(number), client_id="me", summaries=summaries)
        for number in (1, 2)
    ]
    assert len(list(exposition.series(measured))) == 5


async def test_the_number_of_runs_shown_is_bounded(
    world: World, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "MOST_RUNS", 2)
    for number in range(1, 4):
        await started(world, builders.a_run(number), [builders.a_summary()])
    assert len((await families(client))["BAI_METRICS_loss"].samples) == 2
