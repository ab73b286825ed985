"""The series files: compact, torn files tolerated, damage noticed."""

from __future__ import annotations

import pathlib
from array import array
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anubis.adapters.series_store import columns, directory
from anubis.adapters.series_store.directory import DirectorySeriesStore
from anubis.domain.errors import LeaseLost, StoreUnusable
from anubis.domain.metric import MetricKey, MetricSource
from anubis.testing import builders

RUN = builders.a_run_id(1)
KEY = MetricKey(unit="u", name="m", source=MetricSource.EMITTED)


def the_file(root: pathlib.Path) -> pathlib.Path:
    [path] = root.rglob("*.series")
    return path


async def write(store: DirectorySeriesStore, batches: int, *, seal: bool = True) -> None:
    writer = await store.writer(RUN)
    for batch in range(batches):
        await writer.append({KEY: ([batch], [float(batch)])})
    if seal:
        await writer.seal()


@given(st.lists(st.integers(-(2**62), 2**62), max_size=30))
def test_both_ways_of_taking_differences_agree(instants: list[int]) -> None:
    """Whatever the instants, in plain Python and in NumPy."""
    plain = columns._differences(array("q", instants))
    with mock.patch.object(columns, "_FEW", 0):
        assert columns._differences(array("q", instants)) == plain
        assert list(columns._sums(plain)) == instants
    assert list(columns._sums(plain)) == instants


async def test_sealing_merges_the_frames(tmp_path: pathlib.Path) -> None:
    store = DirectorySeriesStore(tmp_path)
    await write(store, 500, seal=False)
    before = the_file(tmp_path).stat().st_size
    await write(store, 500)

    assert the_file(tmp_path).stat().st_size < before / 10
    assert list((await store.read(RUN, KEY))[1]) == [float(batch) for batch in range(500)]
    assert len(list(tmp_path.rglob("*.*"))) == 1


async def test_merging_holds_only_so_many_samples_at_once(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "MERGED_SAMPLES", 3)
    store = DirectorySeriesStore(tmp_path)
    await write(store, 11)

    assert list((await store.read(RUN, KEY))[1]) == [float(batch) for batch in range(11)]


async def test_a_frame_that_is_not_complete_is_not_seen_yet(tmp_path: pathlib.Path) -> None:
    store = DirectorySeriesStore(tmp_path)
    await write(store, 1, seal=False)
    first = the_file(tmp_path).stat().st_size
    await write(store, 2, seal=False)
    whole = the_file(tmp_path).read_bytes()

    for size in range(first, len(whole)):
        the_file(tmp_path).write_bytes(whole[:size])
        assert list((await store.read(RUN, KEY))[1]) == [0.0]


@pytest.mark.parametrize("place", [0, 20, 40, -1])
async def test_damage_is_an_error_and_not_a_wrong_value(tmp_path: pathlib.Path, place: int) -> None:
    store = DirectorySeriesStore(tmp_path)
    await write(store, 1)
    data = bytearray(the_file(tmp_path).read_bytes())
    data[place] ^= 1
    the_file(tmp_path).write_bytes(data)

    with pytest.raises(StoreUnusable):
        await store.read(RUN, KEY)


async def test_a_writer_that_was_replaced_does_not_seal(tmp_path: pathlib.Path) -> None:
    store = DirectorySeriesStore(tmp_path)
    late = await store.writer(RUN)
    await late.append({KEY: ([1], [1.0])})
    await write(store, 2)

    with pytest.raises(LeaseLost):
        await late.seal()
    assert list((await store.read(RUN, KEY))[1]) == [0.0, 1.0]
