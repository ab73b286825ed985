"""What a run asks of its machine: from descriptor to request, refused or told to wait."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from anubis.adapters.dataset_source import available
from anubis.adapters.log_store.memory import MemoryLogStore
from anubis.adapters.run_store.memory import MemoryRunStore
from anubis.adapters.schedule_store.memory import MemoryScheduleStore
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.adapters.series_store.memory import MemorySeriesStore
from anubis.bootstrap import capacity
from anubis.bootstrap.application import Submission
from anubis.bootstrap.local import LocalApplication
from anubis.domain import plan as plans
from anubis.domain.demand import Demand
from anubis.domain.document import Document
from anubis.domain.errors import TooMuch, UserError
from anubis.domain.run import BEFORE_START, Run, RunState, WorkerId
from anubis.ports.engine import Capabilities
from anubis.ports.run_reader import RunQuery
from anubis.settings.model import Settings
from anubis.testing import builders
from anubis.testing.clock import NOON, ManualClock

HEAD = 'spec_version = "0.1.0"\ninfo.description = "d"\nml.benchmark_code = "true"\n'
PROCESS = Capabilities(
    name="process",
    strategies=frozenset({"single_node"}),
    needs_image=False,
    honours_affinity=True,
)
ASKING = """
info.priority = 7
hardware.cpus = 1.5
hardware.memory = "1GiB"
hardware.gpus = 1
limits.concurrency = 3
"""


def installation(**settings: object) -> LocalApplication:
    given = {"home": Path("/nowhere"), "cpus": 2.0, "memory": 4 * 2**30, "gpus": 1, **settings}

    async def nobody() -> None:
        """There is no runtime to wake."""

    return LocalApplication(
        settings=Settings(**given),  # type: ignore[arg-type]
        clock=ManualClock(),
        store=MemoryRunStore(),
        schedule_store=MemoryScheduleStore(),
        logs=MemoryLogStore(),
        series=MemorySeriesStore(),
        script_store=MemoryScriptStore(ManualClock()),
        engines={"process": PROCESS},
        wake_runtime=nobody,
    )


async def submit(application: LocalApplication, text: str = "", **wishes: object) -> Run:
    document = Document(name="a.toml", directory="", content=(HEAD + text).encode())
    submission = Submission(document=document, submitter="ann", environment={})
    wished = dataclasses.replace(submission, **wishes)  # type: ignore[arg-type]
    return (await application.submit(wished)).run


async def start(application: LocalApplication, number: int) -> None:
    """Let so many of the waiting runs be under way."""
    worker = WorkerId("w")
    leased = await application.store.lease(
        worker, now=NOON, duration=builders.HOUR, states=BEFORE_START, limit=number
    )
    for run in leased:
        path = (RunState.FETCHING, RunState.QUEUED, RunState.STARTING, RunState.RUNNING)
        await application.store.apply(worker, builders.a_step(run.id, *path))


async def test_the_run_asks_for_what_its_descriptor_says() -> None:
    run = await submit(installation(slots=2), ASKING)
    assert run.priority == 7
    assert run.demand == Demand(cpus=1.5, memory_bytes=2**30, gpus=1, concurrency=3)


async def test_the_priority_of_the_submission_wins() -> None:
    assert (await submit(installation(), ASKING, priority=-1)).priority == -1


async def test_a_priority_out_of_bounds_is_refused() -> None:
    with pytest.raises(UserError, match="priority: found 101, expected a whole number"):
        await submit(installation(), priority=101)


@pytest.mark.parametrize(
    ("slots", "said", "is_alone"),
    [
        (1, "", True),
        (2, "", False),
        (2, "hardware.exclusive = true", True),
        (1, "hardware.exclusive = false", False),
    ],
)
async def test_a_single_slot_makes_runs_exclusive_unless_they_say_otherwise(
    slots: int, said: str, is_alone: bool
) -> None:
    assert (await submit(installation(slots=slots), said)).demand.exclusive is is_alone


async def test_room_of_an_engine_with_many_machines_is_its_own_affair() -> None:
    """To be alone is to be alone on a machine: the queue lets others start meanwhile."""
    cluster = dataclasses.replace(PROCESS, name="cluster", has_machines=True)
    application = dataclasses.replace(installation(slots=1), engines={"cluster": cluster})
    text = f'{ASKING}hardware.exclusive = true\nhardware.instance_type = "p3.8xlarge"\n'
    run = await submit(application, text.replace("gpus = 1", "gpus = 99"), engine="cluster")
    assert run.demand == Demand(concurrency=3)
    kept = plans.from_json(await application.store.plan(run.id))
    assert kept.submitter == "ann"
    assert kept.units[0].placement.exclusive
    assert kept.units[0].resources.gpus == 99


async def test_what_can_never_fit_is_refused_with_every_field_and_its_place() -> None:
    text = 'hardware.cpus = 8\nhardware.memory = "1TiB"\nhardware.gpus = 2\n'
    with pytest.raises(UserError) as caught:
        await submit(installation(), text)
    assert str(caught.value).splitlines() == [
        f"a.toml:{place}: hardware.{rest}: the engine 'process' has no more"
        for place, rest in (
            ("4:17", "cpus: found 8, expected at most 2"),
            ("5:19", "memory: found 1 TiB, expected at most 4 GiB"),
            ("6:17", "gpus: found 2, expected at most 1"),
        )
    ]


async def test_one_person_may_not_fill_the_queue() -> None:
    application = installation(max_active_per_user=2)
    await submit(application)
    await submit(application)
    with pytest.raises(TooMuch, match="ann has 2 runs that have not ended"):
        await submit(application)
    await submit(application, submitter="bob")


async def test_a_submission_that_is_repeated_by_its_key_is_not_one_too_many() -> None:
    application = installation(max_active_per_user=1)
    first = await submit(application, key="k")

    assert (await submit(application, key="k")).id == first.id
    with pytest.raises(TooMuch):
        await submit(application, key="another")


async def test_a_run_that_waits_says_what_for_and_who_is_before() -> None:
    application = installation(slots=4)
    asking = [await submit(application, "hardware.gpus = 1") for _ in range(3)]
    runs = sorted(asking, key=lambda run: run.id)
    await start(application, 1)
    assert await application.waiting(runs[1]) == "waits for 1 GPU"
    assert await application.waiting(runs[2]) == "waits for 1 GPU; 1 run ahead"
    assert await application.waitings(runs[1:]) == {
        runs[1].id: "waits for 1 GPU",
        runs[2].id: "waits for 1 GPU; 1 run ahead",
    }
    started = await application.store.get(runs[0].id)
    assert await application.waiting(started) == ""


async def test_a_page_of_runs_counts_those_ahead_by_priority_and_age() -> None:
    application = installation(slots=4)
    low = await submit(application, priority=-1)
    usual = await submit(application)
    high = await submit(application, priority=1)
    assert await application.waitings([low, usual, high]) == {
        low.id: "waits for its turn; 2 runs ahead",
        usual.id: "waits for its turn; 1 run ahead",
        high.id: "is about to start",
    }


async def test_more_runs_than_anybody_counts_are_not_counted() -> None:
    application = installation(slots=4)
    runs = [await submit(application) for _ in range(1003)]
    why = await application.waitings(runs)
    ordered = sorted(runs, key=lambda run: run.id)
    assert why[ordered[1000].id] == "waits for its turn; 1,000 runs ahead"
    assert why[ordered[1001].id] == "waits for its turn; more than 1,000 runs ahead"
    assert why[ordered[1002].id] == "waits for its turn; more than 1,000 runs ahead"


def test_what_is_not_declared_is_detected(tmp_path: Path) -> None:
    found = capacity.capacities(Settings(home=tmp_path, slots=3))["process"]
    assert found.slots == 3
    assert found.cpus == len(os.sched_getaffinity(0))
    assert found.memory_bytes > 2**20
    assert found.gpus >= 0


def test_what_is_declared_is_believed(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, cpus=0.5, memory=1000, gpus=9)
    found = capacity.capacities(settings)["process"]
    assert (found.cpus, found.memory_bytes, found.gpus) == (0.5, 1000, 9)


async def test_data_that_nobody_here_could_fetch_is_refused_before_a_run_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of it, with its place; and the extra that is missing, by its name."""
    application = installation()
    monkeypatch.setattr(available, "_has_obstore", lambda: False)
    text = '[[data.sources]]\nsrc = "{}"\npath = "/data/{}"\n'
    given = text.format("hdfs://a/b", 1) + text.format("s3://a/b", 2)
    with pytest.raises(UserError) as caught:
        await submit(application, given)
    first, second = str(caught.value).split("\n")
    assert first.startswith("a.toml:5:7: data.sources[0].src: hdfs://a/b: found the scheme 'hdfs'")
    assert second.startswith("a.toml:8:7: data.sources[1].src: s3:// needs a library")
    assert "anubis[s3]" in second
    assert not await application.store.page(RunQuery(limit=1))


async def test_a_descriptor_that_names_no_engine_gets_the_first_engine_that_is_offered() -> None:
    application = installation(engines="docker,process")
    application.engines["docker"] = dataclasses.replace(PROCESS, name="docker")  # type: ignore[index]

    assert (await submit(application)).engine == "docker"
    assert (await submit(application, 'info.execution_engine = "process"')).engine == "process"
