"""Bring all items of a listing into a folder, and go on where an earlier attempt stopped.

Large items come in segments over several connections, small ones several at a time. Beside the
workers go one follower for each checksum and a keeper that every second syncs what came and notes
it in the journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Final

from anubis.adapters.dataset_cache.directory import copying, journal, linux, trees
from anubis.adapters.dataset_cache.directory.hashing import Follower
from anubis.adapters.dataset_cache.directory.ranges import Ranges
from anubis.adapters.dataset_cache.directory.room import Room
from anubis.adapters.dataset_cache.directory.threads import Threads
from anubis.domain.dataset import Progress, Report, shown
from anubis.domain.errors import SourceUnavailable
from anubis.ports.dataset_source import DatasetSource, Item, Listing

LEAST_SEGMENT: Final = 8 * 1024**2
MOST_SEGMENT: Final = 64 * 1024**2
"""Bytes of one request. Beside a large one its connection costs little; with small ones, the
follower is less far behind when the last byte comes."""

SEGMENTS: Final = 64
"""In how many an item is cut, within these bounds."""

CONNECTIONS: Final = 4
"""To one source for one large item; more seldom brings more, and servers begin to refuse."""

MOST_CONNECTIONS: Final = 16
"""For many items, most of which are small: then waiting for answers is what takes time."""

KEEP_SECONDS: Final = 1.0
"""How often the journal is written: what a crash costs at most."""

CHECK_BYTES: Final = 64 * 1024**2
"""How often a content of unknown size has a look at the disk."""


Pieces = AsyncIterator[bytes | memoryview]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Partial:
    """Where a transfer puts what it brings, on behalf of whom, and with what."""

    folder: Path  #: holds the journal
    content: Path  #: holds the files
    uri: str
    report: Report
    room: Room
    threads: Threads


@dataclasses.dataclass(slots=True)
class _Arrival:
    """What is here of one item."""

    item: Item
    path: Path
    here: Ranges
    is_whole: bool = False  #: also where the source tells no size
    is_noted: bool = True  #: whether the journal knows all of it


class Transfer:
    """One attempt."""

    def __init__(self, source: DatasetSource, listing: Listing, partial: Partial) -> None:
        self._source = source
        self._listing = listing
        self._partial = partial
        sizes = [item.size_bytes for item in listing.items if item.size_bytes is not None]
        self.total = sum(sizes) if len(sizes) == len(listing.items) else None
        """Bytes in all, if the source tells."""
        self.done = 0
        """Bytes that are here."""
        self._arrivals: list[_Arrival] = []
        self._came = asyncio.Condition()
        self._unchecked = 0

    def needed(self) -> int:
        """Bytes of disk that are not taken yet."""
        return max(0, (self.total or 0) - trees.taken(self._partial.content))

    def prepare(self) -> None:
        """Have all files there, with room for all their bytes, and what came before counted in.

        Blocks. Raises OSError if there is no room.
        """
        earlier = journal.read(self._partial.folder)
        self._partial.content.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._partial.folder / journal.FILE).unlink(missing_ok=True)
        for item in self._listing.items:
            path = self._partial.content / item.name
            kept = Ranges()
            entry = earlier.get(item.name)
            if entry and entry.goes_on(item) and self._listing.has_ranges and path.is_file():
                kept = entry.spans
            _make(item, path, kept)
            arrival = _Arrival(item=item, path=path, here=kept)
            arrival.is_whole = item.size_bytes is not None and kept.size == item.size_bytes
            self._arrivals.append(arrival)
            self.done += kept.size
            if kept.size:
                journal.add(self._partial.folder, item, kept, self.total)

    async def run(self, followers: Sequence[Follower]) -> None:
        """Bring what lacks. Raises what the source does, and OSError of the disk."""
        jobs = self._jobs()
        keeper = None
        try:
            async with asyncio.TaskGroup() as tasks:
                keeper = tasks.create_task(self._keep(), name="keep the journal")
                following = [
                    tasks.create_task(self._follow(one), name=f"follow with {one.algorithm}")
                    for one in followers
                ]
                count = min(max(CONNECTIONS, len(self._arrivals)), MOST_CONNECTIONS)
                working = [
                    tasks.create_task(self._work(jobs), name="transfer") for _ in range(count)
                ]
                await asyncio.gather(*working, *following)
                keeper.cancel()
        except BaseExceptionGroup as group:
            await self._note()
            raise _first(group) from None

    async def _work(self, jobs: Iterator[tuple[_Arrival, int, int | None]]) -> None:
        for arrival, start, end in jobs:
            if arrival.item.path is not None:
                await self._copy(arrival, start, end)
            else:
                await self._receive(arrival, start, end)
            if arrival.item.size_bytes is None:
                arrival.is_whole = True
                await self._wake()

    async def _receive(self, arrival: _Arrival, start: int, end: int | None) -> None:
        """Write one segment. Who sends less or more than it says has changed its mind."""
        expected = arrival.item.size_bytes if end is None else end
        position = start
        async with _closing(self._source.read(arrival.item, start, end)) as pieces:
            async for piece in pieces:
                if expected is not None and position + len(piece) > expected:
                    raise _changed(self._partial.uri)
                write = functools.partial(_write, arrival.path, piece, position)
                await self._partial.threads.call(write)
                await self._came_now(arrival, position, position + len(piece))
                position += len(piece)
                await self._check(expected, len(piece))
        if expected is not None and position != expected:
            raise _changed(self._partial.uri)

    async def _copy(self, arrival: _Arrival, start: int, end: int | None) -> None:
        """Have the file system copy a file of this machine; some share the blocks instead."""
        assert arrival.item.path is not None, "of this machine"
        assert end is not None, "a file has a size"
        copy = functools.partial(copying.copy, Path(arrival.item.path), arrival.path, start, end)
        if not await self._partial.threads.call(copy):
            raise _changed(self._partial.uri)
        await self._came_now(arrival, start, end)

    async def _came_now(self, arrival: _Arrival, start: int, end: int) -> None:
        arrival.here.add(start, end)
        arrival.is_noted = False
        arrival.is_whole = arrival.here.size == arrival.item.size_bytes
        self.done += end - start
        await self._wake()
        self._partial.report(
            Progress(uri=self._partial.uri, done_bytes=self.done, total_bytes=self.total)
        )

    async def _wake(self) -> None:
        async with self._came:
            self._came.notify_all()

    async def _check(self, end: int | None, count: int) -> None:
        """Keep the reserve free where nobody could say in advance how much comes."""
        self._unchecked += count
        if end is None and self._unchecked >= CHECK_BYTES:
            self._unchecked = 0
            look = functools.partial(self._partial.room.demand_reserve, self.done)
            await self._partial.threads.call(look)

    async def _follow(self, follower: Follower) -> None:
        for arrival in self._arrivals:
            more = functools.partial(self._more, arrival)
            await follower.follow(arrival.item.name, arrival.path, more)

    async def _more(self, arrival: _Arrival, than: int) -> int:
        async with self._came:
            await self._came.wait_for(lambda: arrival.is_whole or arrival.here.begun > than)
        return arrival.here.begun

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            await self._note()

    async def _note(self) -> None:
        """Sync what came since the last time, then say so in the journal."""
        fresh = [
            (arrival, Ranges(arrival.here)) for arrival in self._arrivals if not arrival.is_noted
        ]
        for arrival, _ in fresh:
            arrival.is_noted = True
        if fresh:
            await self._partial.threads.call(functools.partial(self._write_down, fresh))

    def _write_down(self, fresh: Sequence[tuple[_Arrival, Ranges]]) -> None:
        if len(fresh) > CONNECTIONS:
            linux.sync_tree(self._partial.content)
        else:
            for arrival, _ in fresh:
                linux.sync(arrival.path)
        for arrival, here in fresh:
            journal.add(self._partial.folder, arrival.item, here, self.total)

    def _jobs(self) -> Iterator[tuple[_Arrival, int, int | None]]:
        """What lacks, in order: so the followers can follow."""
        for arrival in self._arrivals:
            size = arrival.item.size_bytes
            if arrival.is_whole:
                continue
            if size is None or not self._listing.has_ranges:
                yield arrival, 0, None
            else:
                most = min(max(LEAST_SEGMENT, size // SEGMENTS), MOST_SEGMENT)
                for start, end in arrival.here.missing(size, most):
                    yield arrival, start, end


def _make(item: Item, path: Path, kept: Ranges) -> None:
    """A file with room for all its bytes."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    file = os.open(path, flags if kept.size else flags | os.O_TRUNC, 0o600)
    try:
        if item.path is not None:  # a copy may share blocks with its original, or have holes
            os.ftruncate(file, item.size_bytes or 0)
        elif item.size_bytes:
            linux.reserve(file, item.size_bytes)
    finally:
        os.close(file)


@contextlib.asynccontextmanager
async def _closing(pieces: Pieces) -> AsyncIterator[Pieces]:
    """Have a source let go at once, and not when its garbage is collected."""
    try:
        yield pieces
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that made the others stop."""
    while isinstance(group.exceptions[0], BaseExceptionGroup):
        group = group.exceptions[0]
    return group.exceptions[0]


def _changed(uri: str) -> SourceUnavailable:
    return SourceUnavailable(f"{shown(uri)} broke off, or became another one while it was read")


def _write(path: Path, piece: bytes | memoryview, position: int) -> None:
    with path.open("r+b", buffering=0) as file:
        rest = memoryview(piece)
        while rest:
            count = os.pwrite(file.fileno(), rest, position)
            position += count
            rest = rest[count:]
