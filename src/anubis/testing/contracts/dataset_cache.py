"""What every dataset cache must do.

Subclass ``DatasetCacheContract`` and give it a fixture ``cache`` with an empty cache that reads
``test://`` URIs from ``source`` by the time of ``clock``, a fixture ``again`` with a cache that
holds the same, as after a restart (it may be the same), and ``content`` that reads a dataset.
"""

# ruff: noqa: D102 - the name of a test is its claim, in a sentence

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime, timedelta

import pytest

from anubis.domain.dataset import Dataset, DatasetKind, Progress, Reference, checksum
from anubis.domain.errors import (
    DatasetInvalid,
    DatasetNotFound,
    NotPossible,
    SourceUnavailable,
    UserError,
)
from anubis.domain.run import RunId
from anubis.ports.dataset_cache import DatasetCache
from anubis.ports.dataset_source import Item, Listing
from anubis.testing.clock import NOON

Content = Callable[[Dataset], Mapping[str, bytes]]

RUN, OTHER_RUN = RunId("run-1"), RunId("run-2")
URI = "test://host/folder/train.csv"
PIECE = 1000


class HastyClock:
    """Time that passes as soon as somebody waits for it."""

    def __init__(self) -> None:
        self._now = NOON

    def now(self) -> datetime:
        """A little later each time, so that no two moments are the same."""
        self._now += timedelta(milliseconds=1)
        return self._now

    def monotonic(self) -> float:
        """In step with ``now``."""
        return (self._now - NOON).total_seconds()

    async def sleep(self, seconds: float) -> None:
        """No wait, but others come to their turn."""
        self._now += timedelta(seconds=seconds)
        await asyncio.sleep(0.001)


@dataclasses.dataclass
class ScriptedSource:
    """A source in memory that counts what is asked of it, and fails on demand."""

    objects: dict[str, bytes] = dataclasses.field(default_factory=dict)
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    tells_size: bool = True
    has_ranges: bool = True
    is_down: bool = False
    breaks_after: list[int] = dataclasses.field(default_factory=list)
    listed: int = 0
    reads: list[tuple[str, int, int | None]] = dataclasses.field(default_factory=list)
    begun: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    may_go_on: asyncio.Event | None = None

    @property
    def schemes(self) -> frozenset[str]:
        """Its own."""
        return frozenset({"test"})

    def put(self, uri: str, content: bytes, version: str = "1") -> Reference:
        """Have an object; the reference to it, with its checksum."""
        self.objects[uri] = content
        self.versions[uri] = version
        return Reference(uri=uri, checksum=checksum(f"sha256:{_sha256(content)}"))

    async def list(self, uri: str) -> Listing:
        """One object, or all below a URI that ends with a slash."""
        self.listed += 1
        if self.is_down:
            raise SourceUnavailable(f"{uri}: down")
        if uri in self.objects:
            return self._listing({uri.rpartition("/")[2]: uri}, is_directory=False)
        below = {key.removeprefix(uri): key for key in self.objects if key.startswith(uri)}
        if not uri.endswith("/") or not below:
            raise DatasetInvalid(f"{uri}: not there")
        return self._listing(below, is_directory=True)

    async def read(self, item: Item, start: int, end: int | None) -> AsyncIterator[bytes]:
        """In small pieces; breaks once after each number of bytes in ``breaks_after``."""
        self.reads.append((item.address, start, end))
        self.begun.set()
        content = self.objects[item.address][start:end]
        until = self.breaks_after.pop(0) if self.breaks_after else None
        for position in range(0, len(content), PIECE):
            if until is not None and position >= until:
                raise SourceUnavailable(f"{item.address}: broke off")
            if self.may_go_on is not None:
                await self.may_go_on.wait()
            yield content[position : position + PIECE]

    def _listing(self, names: Mapping[str, str], *, is_directory: bool) -> Listing:
        items = tuple(
            Item(
                name=name,
                address=uri,
                size_bytes=len(self.objects[uri]) if self.tells_size else None,
                version=self.versions[uri],
            )
            for name, uri in sorted(names.items())
        )
        return Listing(items=items, is_directory=is_directory, has_ranges=self.has_ranges)


def ignore(_: Progress) -> None:
    """A report that nobody reads."""


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class DatasetCacheContract:
    """The suite."""

    @pytest.fixture
    def clock(self) -> HastyClock:
        """By which the cache goes."""
        return HastyClock()

    @pytest.fixture
    def source(self) -> ScriptedSource:
        """From which the cache reads."""
        return ScriptedSource()

    async def test_what_is_fetched_is_whole_and_described(
        self, cache: DatasetCache, source: ScriptedSource, content: Content
    ) -> None:
        reference = source.put(URI, b"a,b" * 1000)

        dataset = await cache.fetch(reference, run=None, report=ignore)

        assert content(dataset) == {"train.csv": b"a,b" * 1000}
        assert dataset.path.endswith("/train.csv")
        assert (dataset.kind, dataset.size_bytes, dataset.files) == (DatasetKind.FILE, 3000, 1)
        assert dataset.digest == f"sha256:{_sha256(b'a,b' * 1000)}"
        assert (dataset.key, dataset.reference) == (reference.key, reference)
        assert list(await cache.list()) == [dataset]

    async def test_a_directory_is_fetched_with_all_files_below_it(
        self, cache: DatasetCache, source: ScriptedSource, content: Content
    ) -> None:
        source.put("test://host/set/a.txt", b"a" * 2500)
        source.put("test://host/set/deep/b.txt", b"")

        dataset = await cache.fetch(Reference(uri="test://host/set/"), run=None, report=ignore)

        assert content(dataset) == {"a.txt": b"a" * 2500, "deep/b.txt": b""}
        assert (dataset.kind, dataset.size_bytes, dataset.files) == (DatasetKind.DIRECTORY, 2500, 2)

    async def test_with_a_checksum_a_hit_asks_nobody(
        self, cache: DatasetCache, again: DatasetCache, source: ScriptedSource
    ) -> None:
        reference = source.put(URI, b"x")
        first = await cache.fetch(reference, run=None, report=ignore)
        source.is_down, source.listed = True, 0

        second = await again.fetch(reference, run=None, report=ignore)

        assert (second.path, second.fetched_at) == (first.path, first.fetched_at)
        assert second.used_at > first.used_at
        assert (source.listed, len(source.reads)) == (0, 1)

    async def test_without_a_checksum_an_unchanged_version_is_a_hit(
        self, cache: DatasetCache, source: ScriptedSource
    ) -> None:
        source.put(URI, b"x")
        await cache.fetch(Reference(uri=URI), run=None, report=ignore)

        await cache.fetch(Reference(uri=URI), run=None, report=ignore)

        assert len(source.reads) == 1

    @pytest.mark.parametrize("version", ["2", ""])
    async def test_without_a_checksum_another_version_or_none_is_fetched_again(
        self, cache: DatasetCache, source: ScriptedSource, content: Content, version: str
    ) -> None:
        source.put(URI, b"old", version and "1")
        await cache.fetch(Reference(uri=URI), run=None, report=ignore)
        source.put(URI, b"new", version)

        dataset = await cache.fetch(Reference(uri=URI), run=None, report=ignore)

        assert content(dataset) == {"train.csv": b"new"}
        assert len(await cache.list()) == 1

    async def test_without_a_checksum_a_copy_is_not_used_while_the_source_is_silent(
        self, cache: DatasetCache, source: ScriptedSource
    ) -> None:
        source.put(URI, b"x")
        await cache.fetch(Reference(uri=URI), run=None, report=ignore)
        source.is_down = True

        with pytest.raises(SourceUnavailable):
            await cache.fetch(Reference(uri=URI), run=None, report=ignore)

    async def test_a_wrong_checksum_names_what_was_found_and_expected_and_keeps_nothing(
        self, cache: DatasetCache, source: ScriptedSource
    ) -> None:
        source.put(URI, b"x")
        wrong = Reference(uri=URI, checksum=checksum("0" * 32))

        with pytest.raises(DatasetInvalid) as error:
            await cache.fetch(wrong, run=RUN, report=ignore)

        found = hashlib.md5(b"x", usedforsecurity=False).hexdigest()
        assert URI in str(error.value)
        assert f"md5:{found}" in str(error.value)
        assert f"md5:{'0' * 32}" in str(error.value)
        assert (list(await cache.list()), len(source.reads)) == ([], 1)

    @pytest.mark.parametrize(
        "uri", ["test://host/nothing", "gopher://host/x", "test://user:secret@host/x"]
    )
    async def test_what_cannot_be_fetched_is_refused_without_showing_a_password(
        self, cache: DatasetCache, uri: str
    ) -> None:
        with pytest.raises(DatasetInvalid) as error:
            await cache.fetch(Reference(uri=uri), run=None, report=ignore)
        assert "secret" not in str(error.value)

    async def test_a_broken_connection_is_tried_again(
        self, cache: DatasetCache, source: ScriptedSource, content: Content
    ) -> None:
        reference = source.put(URI, bytes(range(256)) * 20)
        source.breaks_after = [2 * PIECE]

        dataset = await cache.fetch(reference, run=None, report=ignore)

        assert content(dataset) == {"train.csv": bytes(range(256)) * 20}

    async def test_a_source_that_stays_silent_is_given_up(
        self, cache: DatasetCache, source: ScriptedSource
    ) -> None:
        source.is_down = True

        with pytest.raises(SourceUnavailable):
            await cache.fetch(Reference(uri=URI), run=None, report=ignore)
        assert 2 < source.listed < 20

    async def test_of_many_who_ask_at_once_one_transfers(
        self, cache: DatasetCache, again: DatasetCache, source: ScriptedSource
    ) -> None:
        source.put(URI, b"x" * 5000, version="")
        reference = Reference(uri=URI)

        source.may_go_on = asyncio.Event()
        fetching = [one.fetch(reference, run=None, report=ignore) for one in (cache, again) * 4]
        everybody = asyncio.gather(*fetching)
        await source.begun.wait()
        source.may_go_on.set()
        datasets = await everybody

        assert len({dataset.path for dataset in datasets}) == 1
        assert len(source.reads) == 1

    async def test_progress_ends_with_all_bytes(
        self, cache: DatasetCache, source: ScriptedSource
    ) -> None:
        told: list[Progress] = []

        await cache.fetch(source.put(URI, b"x" * 5000), run=None, report=told.append)

        assert told[-1] == Progress(uri=URI, done_bytes=5000, total_bytes=5000)

    async def test_a_canceled_fetch_leaves_no_dataset_and_can_be_repeated(
        self, cache: DatasetCache, source: ScriptedSource, content: Content
    ) -> None:
        reference = source.put(URI, b"x" * 5000)
        source.may_go_on = asyncio.Event()
        fetching = asyncio.create_task(cache.fetch(reference, run=RUN, report=ignore))
        await source.begun.wait()
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        assert list(await cache.list()) == []
        source.may_go_on = None

        dataset = await cache.fetch(reference, run=None, report=ignore)
        assert content(dataset) == {"train.csv": b"x" * 5000}

    async def test_what_a_run_uses_is_not_evicted_until_the_run_lets_go(
        self, cache: DatasetCache, again: DatasetCache, source: ScriptedSource
    ) -> None:
        reference = source.put(URI, b"x" * 10)
        await cache.fetch(reference, run=RUN, report=ignore)
        dataset = await cache.fetch(reference, run=OTHER_RUN, report=ignore)

        assert dataset.pinned_by == (RUN, OTHER_RUN)
        assert list(await again.pins()) == [RUN, OTHER_RUN]
        await again.unpin(RUN)
        await again.unpin(RUN)
        with pytest.raises(NotPossible, match=OTHER_RUN):
            await again.evict(dataset.key)
        await again.unpin(OTHER_RUN)

        assert await again.evict(dataset.key) == 10
        assert (list(await cache.list()), list(await cache.pins())) == ([], [])

    async def test_the_least_recently_used_go_first_and_pinned_ones_stay(
        self, cache: DatasetCache, source: ScriptedSource
    ) -> None:
        names = ("pinned", "oldest", "old", "used")
        references = {name: source.put(f"test://h/{name}", name.encode() * 50) for name in names}
        for name in ("pinned", "used", "oldest", "old"):
            run = RUN if name == "pinned" else None
            await cache.fetch(references[name], run=run, report=ignore)
        await cache.fetch(references["used"], run=None, report=ignore)

        evicted = await cache.shrink(6 * 50 + 4 * 50)

        assert [one.key for one in evicted] == [references[n].key for n in ("oldest", "old")]
        left = [references[name].key for name in ("used", "pinned")]
        assert [one.key for one in await cache.list()] == left

    async def test_a_dataset_is_found_by_the_beginning_of_its_key(
        self, cache: DatasetCache, source: ScriptedSource
    ) -> None:
        for number in range(20):  # by then two begin with the same digit
            reference = source.put(f"test://h/{number}", str(number).encode())
            dataset = await cache.fetch(reference, run=None, report=ignore)
        firsts = [one.key[0] for one in await cache.list()]

        assert await cache.get(dataset.key[:12]) == dataset
        for wrong in ("", "not a key"):
            with pytest.raises(DatasetNotFound):
                await cache.get(wrong)
        with pytest.raises(UserError):
            await cache.get(next(first for first in firsts if firsts.count(first) > 1))

    async def test_a_dataset_that_is_not_there_cannot_be_evicted(self, cache: DatasetCache) -> None:
        with pytest.raises(DatasetNotFound):
            await cache.evict(Reference(uri=URI).key)

    async def test_an_untouched_dataset_is_found_unchanged(
        self, cache: DatasetCache, source: ScriptedSource
    ) -> None:
        dataset = await cache.fetch(source.put(URI, b"x"), run=None, report=ignore)

        assert await cache.verify(dataset.key)
        assert list(await cache.list()) == [dataset]
