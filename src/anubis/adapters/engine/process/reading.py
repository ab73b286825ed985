"""Read what a follower finds without keeping everybody else waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from anubis.adapters.engine.process import following
from anubis.domain.observation import EmittedChunk, Observation, OutputChunk

THREAD_BYTES = 256 * 1024
"""Reading more than this takes long enough to be worth a thread."""

BATCH_ITEMS = 1000


async def observations(
    follower: following.Follower, found: Iterator[Observation]
) -> AsyncIterator[Observation]:
    """Iterate here when little is to be read, in a thread when it would block the loop."""
    if follower.pending_bytes() < THREAD_BYTES:
        for observation in found:
            yield observation
        return
    while batch := await asyncio.to_thread(_batch, found):
        for observation in batch:
            yield observation


def _batch(observations: Iterator[Observation]) -> list[Observation]:
    """As many as are worth one trip to a thread: about a chunk of bytes."""
    batch: list[Observation] = []
    size = 0
    for observation in observations:
        batch.append(observation)
        if isinstance(observation, OutputChunk | EmittedChunk):
            size += len(observation.data)
        if size >= following.CHUNK_BYTES or len(batch) >= BATCH_ITEMS:
            break
    return batch
