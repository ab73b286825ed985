"""Why runs wait: what the stage ``queueing`` says about them, read from the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from anubis.domain.demand import Capacity
from anubis.domain.run import BEFORE_START, UNDER_WAY, Run, RunId, RunState
from anubis.ports.run_reader import RunQuery
from anubis.ports.run_store import RunStore
from anubis.stages.queueing import reasons
from anubis.stages.queueing.reasons import MOST_COUNTED, Standing

OCCUPYING = UNDER_WAY | {RunState.FETCHING}
"""What has a place: a run fetches when it is its turn."""

MOST_UNDER_WAY = 1000
"""More than all slots; a bound for what is read."""


async def sentences(
    runs: Iterable[Run], store: RunStore, capacities: Callable[[], Mapping[str, Capacity]]
) -> Mapping[RunId, str]:
    """For each of these runs that waits, why."""
    waiting = sorted((run for run in runs if run.state in BEFORE_START), key=_place)
    if not waiting:
        return {}
    engines = capacities()
    under_way = await store.page(RunQuery(states=OCCUPYING, limit=MOST_UNDER_WAY))
    ahead, found = 0, {}
    for run in waiting:
        # In this order each has no fewer before it than the last: past the end of counting, all do.
        if ahead <= MOST_COUNTED:
            ahead = await store.ahead(run, states=BEFORE_START, limit=MOST_COUNTED + 1)
        standing = Standing(engine=run.engine, capacities=engines, under_way=under_way, ahead=ahead)
        found[run.id] = reasons.reason(run, standing)
        await asyncio.sleep(0)  # a long page must not keep others waiting
    return found


def _place(run: Run) -> tuple[int, RunId]:
    return -run.priority, run.id
