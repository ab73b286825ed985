"""The Python client against a real service: every call, over runs that really happened."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from anubis.client import Client, Wishes, read_document
from anubis.domain.access import Role
from anubis.domain.document import Document
from anubis.domain.errors import (
    DescriptorInvalid,
    NotPossible,
    RunNotFound,
    ScheduleNotFound,
    TokenNotFound,
    UserError,
)
from anubis.domain.run import Run, RunId, RunState
from anubis.ports.history import TrendQuery
from anubis.ports.log_store import LogQuery
from anubis.ports.run_reader import RunQuery
from anubis.ports.schedule_store import ScheduleQuery
from anubis.stages.presentation.watching import Snapshot

from .conftest import Home
from .serving import Service

pytestmark = pytest.mark.acceptance

PROGRAM = r"""
for n in 1 2 3; do echo "loss=0.$n"; done
printf 'binary \377\n' >&2
"""


@pytest.fixture
async def client(service: Service) -> AsyncIterator[Client]:
    async with Client(service.endpoint, user="ann") as made:
        yield made


def a_document(folder: Path, program: str = PROGRAM, name: str = "bench") -> Document:
    return read_document(folder / Home(folder).descriptor(program, name))


async def ended(client: Client, run_id: RunId) -> Run:
    snapshots = [snapshot async for snapshot in client.watch(run_id)]
    return snapshots[-1].run


async def test_a_run_from_submission_to_purge(client: Client, tmp_path: Path) -> None:
    document = a_document(tmp_path)
    submitted = await client.submit(document, Wishes(priority=3, key="once"))
    run_id = submitted.run.id
    assert (submitted.run.submitter, submitted.run.priority) == ("ann", 3)
    assert (await client.submit(document, Wishes(priority=3, key="once"))).run.id == run_id
    changed = dataclasses.replace(document, content=document.content + b"\n")
    with pytest.raises(NotPossible, match="key"):
        await client.submit(changed, Wishes(key="once"))

    snapshots: list[Snapshot] = [snapshot async for snapshot in client.watch(run_id)]
    events = [event for snapshot in snapshots for event in snapshot.events]
    assert events == list(await client.events(run_id))
    assert snapshots[-1].run == await client.get(run_id)
    assert snapshots[-1].run.state is RunState.SUCCEEDED
    assert list(snapshots[-1].summaries) == list(await client.summaries(run_id))

    for reference in (run_id, run_id[:30], run_id.upper(), "last"):
        assert await client.resolve(reference) == run_id
    assert await client.document(run_id) == document
    assert await client.fingerprint(run_id) is not None
    lines = {line.text async for line in client.lines(run_id)}
    assert lines == {b"loss=0.1\n", b"loss=0.2\n", b"loss=0.3\n", b"binary \xff\n"}
    last = [line.text async for line in client.lines(run_id, LogQuery(contains="loss", tail=1))]
    assert last == [b"loss=0.3\n"]

    [loss] = [key for key in await client.series.keys(run_id) if key.name == "loss"]
    instants, values = await client.series.read(run_id, loss)
    assert list(values) == [0.1, 0.2, 0.3]
    assert len(instants) == 3
    assert len((await client.series.read(run_id, loss, points=2))[1]) == 2

    assert [event.sequence for event in await client.feed(after=0)][-1] == events[-1].sequence
    assert (await client.counts())[RunState.SUCCEEDED] == 1
    [group] = await client.benchmarks()
    assert (group.name, group.runs, group.newest) == ("bench", 1, run_id)
    [point] = await client.trend(TrendQuery(benchmark="bench", metric="loss"))
    assert (point.run_id, point.summary.count) == (run_id, 3)

    again = (await client.resubmit(run_id)).run
    assert (await ended(client, again.id)).descriptor_sha == document.sha
    assert [run.id for run in await client.page(RunQuery(submitter="ann"))] == [again.id, run_id]
    assert await client.page(RunQuery(submitter="bob")) == []
    assert [run.id for run in await client.page(RunQuery(before=again.id))] == [run_id]
    for one in (run_id, again.id):
        await client.purge(one)
    with pytest.raises(RunNotFound):
        await client.get(run_id)


async def test_a_run_is_canceled_and_others_say_why_they_wait(
    client: Client, tmp_path: Path
) -> None:
    document = a_document(tmp_path, "sleep 60")
    first = (await client.submit(document)).run
    second = (await client.submit(document)).run
    async for snapshot in client.watch(first.id):
        if snapshot.run.state is RunState.RUNNING:
            break
    assert "slot" in await client.waiting(second.id)
    assert list(await client.waitings([second.id, first.id])) == [second.id]
    for run in (second, first):
        assert (await client.cancel(run.id)).cancel_requested_at is not None
        assert (await ended(client, run.id)).state is RunState.CANCELED
        with pytest.raises(NotPossible):
            await client.cancel(run.id)
        await client.purge(run.id)


async def test_a_bad_descriptor_has_the_same_problems_there(client: Client, tmp_path: Path) -> None:
    bad = Document(name="bad.toml", directory=str(tmp_path), content=b"[inof]\n")
    verdict = await client.validate(bad)
    assert not verdict.is_valid
    with pytest.raises(DescriptorInvalid) as refused:
        await client.submit(bad)
    assert refused.value.problems == verdict.problems
    assert verdict.problems[0].file == "bad.toml"
    good = await client.validate(a_document(tmp_path))
    assert (good.is_valid, good.problems) == (True, ())


async def test_a_schedule_from_making_to_removing(client: Client, tmp_path: Path) -> None:
    document = a_document(tmp_path, "true", "nightly")
    content = document.content.replace(b"[info]\n", b'[info]\nscheduling = "0 0 1 1 *"\n', 1)
    document = dataclasses.replace(document, content=content)
    with pytest.raises(UserError, match="schedule"):
        await client.submit(document)
    added = await client.schedules.add(document, Wishes(key="nightly-1"))
    schedule = added.schedule
    assert (await client.schedules.add(document, Wishes(key="nightly-1"))).schedule == schedule
    assert await client.schedules.get(schedule.id) == schedule
    assert await client.schedules.resolve("nightly") == schedule.id
    assert list(await client.schedules.page(ScheduleQuery())) == [schedule]
    assert await client.schedules.document(schedule.id) == document
    assert len(await client.schedules.upcoming(schedule.id)) == 5
    assert (await client.schedules.pause(schedule.id)).is_paused
    assert not (await client.schedules.resume(schedule.id)).is_paused
    run = await client.schedules.run_now(schedule.id)
    assert run.family == schedule.id
    await ended(client, run.id)
    [family] = await client.families()
    assert family.name == schedule.id
    assert run.id in {event.run_id for event in await client.schedules.events(schedule.id)}
    await client.schedules.remove(schedule.id)
    with pytest.raises(ScheduleNotFound):
        await client.schedules.get(schedule.id)
    await client.purge(run.id)


async def test_the_service_tells_about_itself(client: Client) -> None:
    me = await client.me()
    assert (me.user, me.role, me.token, me.requires_tokens) == ("ann", Role.ADMIN, None, False)
    health = await client.health()
    assert health.status == "ok"
    assert re.fullmatch(r"\d+\.\d+\.\d+", health.version)
    await client.must_be_ready()
    [process] = [one for one in await client.engines() if one.name == "process"]
    assert process.is_healthy
    assert process.capacity.slots == 1
    made = await client.tokens.create("bob", Role.VIEWER, note="for a test", days=1)
    assert made.secret not in repr(made)
    assert made.token.id in {one.id for one in await client.tokens.all()}
    assert (await client.tokens.revoke(made.token.id)).revoked_at is not None
    with pytest.raises(TokenNotFound):
        await client.tokens.revoke(type(made.token.id)("nobody"))


async def test_many_watch_one_run_without_missing_anything(client: Client, tmp_path: Path) -> None:
    run = (await client.submit(a_document(tmp_path, "sleep 0.5"))).run

    async def told() -> list[int]:
        snapshots = [snapshot async for snapshot in client.watch(run.id)]
        return [event.number for snapshot in snapshots for event in snapshot.events]

    everybody = await asyncio.gather(*(told() for _ in range(120)))
    numbers = [event.number for event in await client.events(run.id)]
    assert everybody == [numbers] * 120
    await client.purge(run.id)
