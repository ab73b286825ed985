"""Have all that a run refers to in the cache, some at once and each thing once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from anubis.domain.dataset import Dataset, Reference, Report
from anubis.domain.run import RunId
from anubis.ports.dataset_cache import DatasetCache

AT_ONCE: Final = 16
"""Transfers of one run. Each has connections and files of its own, and a process may have few."""


async def fetch_all(
    references: Sequence[Reference], cache: DatasetCache, run: RunId, report: Report
) -> Sequence[Dataset]:
    """The datasets, in the order of the references, pinned for the run.

    Raises what ``DatasetCache.fetch`` raises; of several failures, the first. Then the other
    transfers have stopped, and what is pinned stays so until ``unpin``: as when the caller is
    cancelled.
    """
    distinct = dict.fromkeys(references)
    turns = asyncio.Semaphore(AT_ONCE)

    async def fetch(one: Reference) -> Dataset:
        async with turns:
            return await cache.fetch(one, run=run, report=report)

    try:
        async with asyncio.TaskGroup() as tasks:
            fetching = {
                one: tasks.create_task(fetch(one), name=f"fetch {one.key[:12]}") for one in distinct
            }
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    return [fetching[reference].result() for reference in references]
