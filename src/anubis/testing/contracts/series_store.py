"""What every series store must do.

Subclass ``SeriesStoreContract`` and give it a fixture ``store`` with a fresh, empty store, and
a fixture ``reader`` with a store that reads the same series from elsewhere (it may be the same).
"""

# ruff: noqa: D102 - the name of a test is its claim, in a sentence

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from anubis.domain.metric import MetricKey, MetricSource
from anubis.ports.series_store import SeriesStore
from anubis.testing import builders

RUN = builders.a_run_id(1)
OTHER = builders.a_run_id(2)


def a_key(name: str = "loss", unit: str = "benchmark", source: str = "pattern") -> MetricKey:
    """Name a series."""
    return MetricKey(unit=unit, name=name, source=MetricSource(source))


async def read(store: SeriesStore, key: MetricKey) -> tuple[list[int], list[float]]:
    """The series as plain lists."""
    instants, values = await store.read(RUN, key)
    return list(instants), list(values)


def bits(values: Sequence[float]) -> list[bytes]:
    """What distinguishes all floats, NaN and zeros included."""
    return [struct.pack("<d", value) for value in values]


class SeriesStoreContract:
    """Inherit from this."""

    async def test_a_run_without_samples_has_no_series(self, store: SeriesStore) -> None:
        await (await store.writer(RUN)).seal()

        assert list(await store.keys(RUN)) == []
        assert await read(store, a_key()) == ([], [])

    async def test_samples_come_back_in_order_of_arrival(self, store: SeriesStore) -> None:
        writer = await store.writer(RUN)
        await writer.append({a_key(): ([5, 3], [1.5, -2.0]), a_key("acc"): ([5], [0.1])})
        await writer.append({a_key(): ([4], [0.25])})
        await writer.seal()

        assert await read(store, a_key()) == ([5, 3, 4], [1.5, -2.0, 0.25])
        assert await read(store, a_key("acc")) == ([5], [0.1])

    async def test_samples_are_visible_before_the_end(
        self, store: SeriesStore, reader: SeriesStore
    ) -> None:
        writer = await store.writer(RUN)
        await writer.append({a_key(): ([1], [1.0])})
        first = await read(reader, a_key())
        await writer.append({a_key(): ([2], [2.0])})

        assert first == ([1], [1.0])
        assert await read(reader, a_key()) == ([1, 2], [1.0, 2.0])

    async def test_keys_are_ordered_by_unit_source_and_name(self, store: SeriesStore) -> None:
        keys = [
            a_key("b", "u", "emitted"),
            a_key("a", "u", "pattern"),
            a_key("c", "u", "pattern"),
            a_key("a", "v", "emitted"),
            a_key("a", "v", "resource"),
        ]
        writer = await store.writer(RUN)
        for key in reversed(keys):
            await writer.append({key: ([1], [1.0])})
        await writer.seal()

        assert list(await store.keys(RUN)) == keys

    async def test_every_float_and_instant_survives_bit_by_bit(self, store: SeriesStore) -> None:
        values = [math.nan, -0.0, 0.0, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 0.1]
        instants = [0, -1, 2**62, -(2**62), 1, 1, 1, 1_700_000_000_123_457]
        writer = await store.writer(RUN)
        await writer.append({a_key(): (instants, values)})
        await writer.seal()

        read_instants, read_values = await store.read(RUN, a_key())

        assert list(read_instants) == instants
        assert bits(read_values) == bits(values)

    async def test_a_long_series_in_many_parts_comes_back(self, store: SeriesStore) -> None:
        instants = [1_700_000_000_000_000 + 997 * number for number in range(20_000)]
        values = [math.sin(number) for number in range(20_000)]
        writer = await store.writer(RUN)
        for start in range(0, 20_000, 1_500):
            part = slice(start, start + 1_500)
            await writer.append({a_key(): (instants[part], values[part])})
        before = await read(store, a_key())
        await writer.seal()

        assert before == (instants, values)
        assert await read(store, a_key()) == (instants, values)

    async def test_the_writer_gives_back_values_before_and_after_the_seal(
        self, store: SeriesStore
    ) -> None:
        writer = await store.writer(RUN)
        await writer.append({a_key(): ([1, 2], [1.0, 2.0])})
        before = list(await writer.values(a_key()))
        await writer.seal()

        assert before == [1.0, 2.0]
        assert list(await writer.values(a_key())) == [1.0, 2.0]
        assert list(await writer.values(a_key("unknown"))) == []

    async def test_any_name_is_kept(self, store: SeriesStore) -> None:
        keys = [a_key(name) for name in ("", 'größe "µ"', "a/b\n", "x" * 250)]
        writer = await store.writer(RUN)
        await writer.append({key: ([1], [1.0]) for key in keys})
        await writer.seal()

        assert set(await store.keys(RUN)) == set(keys)

    async def test_a_new_writer_replaces_what_was_there(self, store: SeriesStore) -> None:
        await (await store.writer(RUN)).append({a_key("old"): ([1], [1.0])})
        writer = await store.writer(RUN)
        await writer.append({a_key("new"): ([1], [1.0])})

        assert list(await store.keys(RUN)) == [a_key("new")]

    async def test_deleted_series_are_gone_and_deleting_may_be_repeated(
        self, store: SeriesStore
    ) -> None:
        writer = await store.writer(RUN)
        await writer.append({a_key(): ([1], [1.0])})
        await writer.seal()
        await store.delete(RUN)
        await store.delete(RUN)

        assert list(await store.keys(RUN)) == []

    async def test_runs_do_not_mix(self, store: SeriesStore) -> None:
        await (await store.writer(RUN)).append({a_key(): ([1], [1.0])})
        await (await store.writer(OTHER)).append({a_key(): ([2], [2.0])})
        await store.delete(OTHER)

        assert await read(store, a_key()) == ([1], [1.0])
