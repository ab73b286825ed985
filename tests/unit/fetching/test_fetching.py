"""All data of a run comes together, or its failure does."""

from __future__ import annotations

import asyncio

import pytest

from anubis.adapters.dataset_cache.memory import MemoryDatasetCache
from anubis.domain.dataset import Progress, Reference
from anubis.domain.errors import DatasetInvalid
from anubis.domain.run import RunId
from anubis.stages.fetching.fetching import AT_ONCE, fetch_all
from anubis.testing.contracts.dataset_cache import HastyClock, ScriptedSource, ignore

RUN = RunId("run-1")


@pytest.fixture
def source() -> ScriptedSource:
    return ScriptedSource()


@pytest.fixture
def cache(source: ScriptedSource) -> MemoryDatasetCache:
    return MemoryDatasetCache({"test": source}, HastyClock())


async def test_datasets_come_in_the_order_of_their_references_each_fetched_once_and_pinned(
    cache: MemoryDatasetCache, source: ScriptedSource
) -> None:
    first, second = source.put("test://h/a", b"a"), source.put("test://h/b", b"bb")
    told: list[Progress] = []

    datasets = await fetch_all([second, first, second], cache, RUN, told.append)

    assert [dataset.reference for dataset in datasets] == [second, first, second]
    assert all(dataset.pinned_by == (RUN,) for dataset in datasets)
    assert (len(source.reads), {one.uri for one in told}) == (2, {"test://h/a", "test://h/b"})


async def test_a_run_without_data_fetches_nothing(cache: MemoryDatasetCache) -> None:
    assert await fetch_all([], cache, RUN, ignore) == []


async def test_the_first_failure_stops_the_other_transfers_and_is_told_as_it_is(
    cache: MemoryDatasetCache, source: ScriptedSource
) -> None:
    endless = source.put("test://h/endless", b"x")
    source.may_go_on = asyncio.Event()

    with pytest.raises(DatasetInvalid, match="test://h/missing: not there"):
        await fetch_all([endless, Reference(uri="test://h/missing")], cache, RUN, ignore)

    assert list(await cache.list()) == []


async def test_a_run_with_very_many_sources_fetches_only_some_at_once(
    cache: MemoryDatasetCache, source: ScriptedSource
) -> None:
    references = [source.put(f"test://h/{number}", b"x") for number in range(3 * AT_ONCE)]
    source.may_go_on = asyncio.Event()
    task = asyncio.create_task(fetch_all(references, cache, RUN, ignore))
    await source.begun.wait()
    for _ in range(100):
        await asyncio.sleep(0)
    begun = len(source.reads)
    source.may_go_on.set()

    assert len(await task) == 3 * AT_ONCE
    assert 1 <= begun <= AT_ONCE
