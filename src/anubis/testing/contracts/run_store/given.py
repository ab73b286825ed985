"""Where the tests of the contract start from: workers, and runs that are already somewhere."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

from anubis.domain.run import ACTIVE, Run, RunId, WorkerId
from anubis.ports.run_reader import RunQuery
from anubis.ports.run_store import RunStore
from anubis.testing import builders
from anubis.testing.builders import PATH_TO_SUCCESS, PLAN
from anubis.testing.clock import NOON

ANNA, BEN = WorkerId("anna"), WorkerId("ben")
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
NOBODY = builders.a_run_id(999)


async def add(store: RunStore, *runs: Run) -> None:
    """Store new runs, all of the default document."""
    for run in runs:
        await store.add(run, builders.a_document(), PLAN, "submitted")


async def take(store: RunStore, worker: WorkerId = ANNA, limit: int = 1) -> list[RunId]:
    """Lease runs at noon for a minute."""
    leased = await store.lease(worker, now=NOON, duration=MINUTE, states=ACTIVE, limit=limit)
    return [run.id for run in leased]


async def a_leased_run(store: RunStore, number: int = 0) -> RunId:
    """Add a run and give it to Anna."""
    run = builders.a_run(number)
    await add(store, run)
    assert await take(store) == [run.id]
    return run.id


async def an_ended_run(store: RunStore, number: int = 0) -> RunId:
    """Add a run and bring it to SUCCEEDED."""
    run_id = await a_leased_run(store, number)
    await store.apply(ANNA, builders.a_step(run_id, *PATH_TO_SUCCESS))
    return run_id


async def page(store: RunStore, **filters: object) -> list[RunId]:
    """Ids of a page."""
    query = dataclasses.replace(RunQuery(), **filters)  # type: ignore[arg-type] # any field
    return [run.id for run in await store.page(query)]
