"""Have all datasets of a run here: at the same time, each once, and all or none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from anubis.domain.dataset import Dataset, Reference, Report
from anubis.domain.run import RunId
from anubis.ports.dataset_cache import DatasetCache


async def fetch_all(
    references: Sequence[Reference], cache: DatasetCache, run: RunId, report: Report
) -> list[Dataset]:
    """The datasets in the order of the references, pinned for the run.

    The first failure cancels the other transfers and is raised, as the cache raised it. Cancelling
    the call cancels all of them.
    """
    tasks = {
        reference: asyncio.create_task(cache.fetch(reference, run=run, report=report))
        for reference in dict.fromkeys(references)
    }
    try:
        await asyncio.gather(*tasks.values())
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    return [tasks[reference].result() for reference in references]
