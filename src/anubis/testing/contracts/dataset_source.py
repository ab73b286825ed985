"""What every source of datasets must do.

Subclass ``DatasetSourceContract`` (or ``ObjectContract``, for a source that knows no folders), and
give it a fixture ``source`` with the source, and a fixture ``shelf`` through which the suite puts
content where the source will find it::

    class TestMySource(DatasetSourceContract):
        @pytest.fixture
        def source(self) -> DatasetSource:
            return MySource()

        @pytest.fixture
        def shelf(self, my_server: MyServer) -> Shelf:
            return MyShelf(my_server)
"""

# ruff: noqa: D102 - the name of a test is its claim, in a sentence

from __future__ import annotations

import asyncio
import hashlib
from typing import Protocol

import pytest

from anubis.domain.dataset import scheme_of
from anubis.domain.errors import DatasetInvalid, SourceUnavailable
from anubis.ports.dataset_source import DatasetSource, Item, Listing

PATIENCE_SECONDS = 120.0
"""Never reached by a source that works; a suite must not hang on one that does not."""

LARGE = b"".join(hashlib.sha256(bytes([number % 256])).digest() * 1024 for number in range(640))
"""20 MiB: several pieces, whatever their size."""

RANGES = ((0, 1), (0, 5), (3, 7), (9, 10), (5, None), (0, None))
NAMES = ("plain.txt", "with space", "größe.txt", "a+b&c=d", "50%", "100%25", "semi;colon", "[x]~'!")


class Shelf(Protocol):
    """Where the suite puts content. Names are paths below a place that is empty at the start."""

    def uri(self, name: str) -> str:
        """How a user writes the address of ``name``, with or without a slash at its end."""
        ...

    def put(self, name: str, content: bytes) -> None:
        """Have it there, new or changed."""
        ...

    def remove(self, name: str) -> None:
        """Have it gone."""
        ...


async def content(
    source: DatasetSource, item: Item, start: int = 0, end: int | None = None
) -> bytes:
    """All that ``read`` gives."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return b"".join([bytes(piece) async for piece in source.read(item, start, end)])


async def listing(source: DatasetSource, uri: str) -> Listing:
    """What is there, in time."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await source.list(uri)


async def only(source: DatasetSource, uri: str) -> Item:
    """The only item of a listing."""
    found = await listing(source, uri)
    assert len(found.items) == 1
    return found.items[0]


class ObjectContract:
    """One object is found, and all of it is read, or the part that is asked for."""

    async def test_the_scheme_of_its_uris_is_among_its_schemes(
        self, source: DatasetSource, shelf: Shelf
    ) -> None:
        assert scheme_of(shelf.uri("x")) in source.schemes
        assert all(scheme == scheme.lower() for scheme in source.schemes)

    async def test_an_object_is_listed_with_its_name_and_its_size(
        self, source: DatasetSource, shelf: Shelf
    ) -> None:
        shelf.put("data/train.csv", b"0123456789")
        found = await listing(source, shelf.uri("data/train.csv"))

        assert not found.is_directory
        assert [item.name for item in found.items] == ["train.csv"]
        assert found.items[0].size_bytes in {10, None}

    @pytest.mark.parametrize("name", NAMES)
    async def test_an_object_of_any_name_is_read_as_it_was_put(
        self, source: DatasetSource, shelf: Shelf, name: str
    ) -> None:
        shelf.put(name, name.encode())
        item = await only(source, shelf.uri(name))

        assert item.name == name
        assert await content(source, item) == name.encode()

    async def test_an_empty_object_is_an_object(self, source: DatasetSource, shelf: Shelf) -> None:
        shelf.put("empty", b"")
        item = await only(source, shelf.uri("empty"))

        assert item.name == "empty"
        assert item.size_bytes in {0, None}
        assert await content(source, item) == b""

    @pytest.mark.parametrize(("start", "end"), RANGES)
    async def test_a_range_has_the_bytes_from_its_start_up_to_its_end(
        self, source: DatasetSource, shelf: Shelf, start: int, end: int | None
    ) -> None:
        shelf.put("digits", b"0123456789")
        found = await listing(source, shelf.uri("digits"))
        if not found.has_ranges:
            pytest.skip("this source has no ranges")

        assert await content(source, found.items[0], start, end) == b"0123456789"[start:end]

    async def test_a_large_object_comes_in_pieces(
        self, source: DatasetSource, shelf: Shelf
    ) -> None:
        shelf.put("large", LARGE)
        item = await only(source, shelf.uri("large"))
        pieces = [bytes(piece) async for piece in source.read(item, 0, None)]

        assert b"".join(pieces) == LARGE
        assert len(pieces) > 1
        assert all(pieces)

    async def test_many_parts_are_read_at_once(self, source: DatasetSource, shelf: Shelf) -> None:
        shelf.put("large", LARGE)
        found = await listing(source, shelf.uri("large"))
        if not found.has_ranges:
            pytest.skip("this source has no ranges")
        step = len(LARGE) // 8
        parts = await asyncio.gather(
            *(content(source, found.items[0], n * step, (n + 1) * step) for n in range(8))
        )

        assert b"".join(parts) == LARGE

    async def test_a_reader_that_stops_early_harms_nobody(
        self, source: DatasetSource, shelf: Shelf
    ) -> None:
        shelf.put("large", LARGE)
        item = await only(source, shelf.uri("large"))
        reading = source.read(item, 0, None)
        first = await anext(reading)
        await reading.aclose()  # type: ignore[attr-defined] # a generator, as all sources give

        assert LARGE.startswith(first)
        assert await content(source, item) == LARGE

    async def test_a_reader_that_is_canceled_ends(
        self, source: DatasetSource, shelf: Shelf
    ) -> None:
        shelf.put("large", LARGE)
        item = await only(source, shelf.uri("large"))
        begun = asyncio.Event()

        async def reading() -> None:
            async for _ in source.read(item, 0, None):
                begun.set()

        task = asyncio.create_task(reading())
        await asyncio.wait_for(begun.wait(), PATIENCE_SECONDS)
        task.cancel()
        await asyncio.wait({task}, timeout=PATIENCE_SECONDS)

        assert task.done()
        assert await content(source, item, 0, None) == LARGE

    async def test_the_version_changes_with_the_content_and_only_then(
        self, source: DatasetSource, shelf: Shelf
    ) -> None:
        shelf.put("a", b"first")
        before = await only(source, shelf.uri("a"))
        again = await only(source, shelf.uri("a"))
        if not before.version:
            pytest.skip("this source does not tell versions")
        shelf.put("a", b"the second")
        after = await only(source, shelf.uri("a"))

        assert again.version == before.version
        assert after.version != before.version

    async def test_content_that_changed_since_the_listing_is_not_taken_for_it(
        self, source: DatasetSource, shelf: Shelf
    ) -> None:
        shelf.put("a", b"first")
        item = await only(source, shelf.uri("a"))
        shelf.put("a", b"the second")

        with pytest.raises(SourceUnavailable):
            await content(source, item, 0, 5)

    async def test_content_that_is_gone_since_the_listing_is_not_taken_for_empty(
        self, source: DatasetSource, shelf: Shelf
    ) -> None:
        shelf.put("a", b"first")
        item = await only(source, shelf.uri("a"))
        shelf.remove("a")

        with pytest.raises((DatasetInvalid, SourceUnavailable)):
            await content(source, item)

    async def test_what_is_not_there_is_named(self, source: DatasetSource, shelf: Shelf) -> None:
        shelf.put("something", b"1")
        with pytest.raises(DatasetInvalid, match="not-there"):
            await listing(source, shelf.uri("not-there"))


class FolderContract:
    """All below a folder is found, and nothing beside it."""

    @pytest.mark.parametrize("slash", ["", "/"])
    async def test_a_folder_is_all_that_is_below_it(
        self, source: DatasetSource, shelf: Shelf, slash: str
    ) -> None:
        files = {"one": b"1", "sub/two": b"22", "sub/deep/er/three": b"333", "sub/größe 4": b""}
        for name, data in files.items():
            shelf.put(f"set/{name}", data)
        found = await listing(source, shelf.uri("set") + slash)

        assert found.is_directory
        assert {item.name: await content(source, item) for item in found.items} == files
        assert {item.size_bytes for item in found.items} <= {0, 1, 2, 3, None}

    async def test_a_folder_has_no_neighbors_whose_names_begin_alike(
        self, source: DatasetSource, shelf: Shelf
    ) -> None:
        for name in ("pre/inside", "prefix/outside", "pre-outside", "prefix.txt"):
            shelf.put(name, b"1")
        found = await listing(source, shelf.uri("pre"))

        assert [item.name for item in found.items] == ["inside"]

    async def test_the_beginning_of_a_name_is_not_a_folder(
        self, source: DatasetSource, shelf: Shelf
    ) -> None:
        shelf.put("prefix/file", b"1")
        with pytest.raises(DatasetInvalid):
            await listing(source, shelf.uri("pre"))

    async def test_a_folder_of_one_object_is_a_folder(
        self, source: DatasetSource, shelf: Shelf
    ) -> None:
        shelf.put("set/only", b"1")

        assert (await listing(source, shelf.uri("set"))).is_directory

    async def test_two_listings_have_the_same_order(
        self, source: DatasetSource, shelf: Shelf
    ) -> None:
        for name in ("b", "a/c", "a/b", "c"):
            shelf.put(f"set/{name}", b"1")
        first = await listing(source, shelf.uri("set"))
        second = await listing(source, shelf.uri("set"))

        assert first == second
        assert [item.name for item in first.items] == ["a/b", "a/c", "b", "c"]


class DatasetSourceContract(ObjectContract, FolderContract):
    """Everything."""
