"""Fetch what is not here: list, make room, transfer, check, unpack, publish."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from anubis.adapters.dataset_cache.directory import (
    layout,
    linux,
    locking,
    records,
    trees,
)
from anubis.adapters.dataset_cache.directory.catalog import Catalog
from anubis.adapters.dataset_cache.directory.hashing import Follower
from anubis.adapters.dataset_cache.directory.layout import Layout
from anubis.adapters.dataset_cache.directory.records import Record
from anubis.adapters.dataset_cache.directory.room import Room
from anubis.adapters.dataset_cache.directory.threads import Threads
from anubis.adapters.dataset_cache.directory.transferring import Partial, Transfer
from anubis.domain.dataset import DatasetKind, Reference, Report, shown
from anubis.domain.errors import DatasetInvalid, SourceUnavailable, StorageFull
from anubis.domain.run import RunId
from anubis.ports.clock import Clock
from anubis.ports.dataset_source import DatasetSource, Listing

T = TypeVar("T")

PAUSES: Final = (0.5, 1.0, 2.0, 4.0)
"""Seconds before another attempt, as long as attempts bring nothing new."""

OBJECT, ARCHIVE = "object", "archive"
"""Folders of a partial: what is to become the object; an archive before it is unpacked."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Fetching:
    """One fetch of one reference by whoever holds its lock."""

    reference: Reference
    source: DatasetSource
    place: Layout
    catalog: Catalog
    room: Room
    threads: Threads
    clock: Clock

    async def fetch(self, run: RunId | None, report: Report) -> None:
        """Have it published, and pinned for the run. Raises as the port says."""
        try:
            listing, digests = await self._transferred(report)
            self._demand_checksum(listing, digests)
            record = await self._made(listing, digests)
            self._demand_budget(record["size"])
            publish = functools.partial(
                self.catalog.publish, self.reference.key, self._folder / OBJECT, record, run
            )
            await self._call(publish)
            if self.room.budget is not None:
                await self._call(functools.partial(self.catalog.shrink, self.room.budget))
        except (DatasetInvalid, StorageFull):
            await self._call(self._forget)
            raise
        await self._call(self._forget)

    @property
    def _folder(self) -> Path:
        return self.place.partial / self.reference.key

    async def _transferred(self, report: Report) -> tuple[Listing, Mapping[str, Follower]]:
        """All content, here and hashed. What brings nothing new is not tried for ever."""
        pauses, most = iter(PAUSES), 0
        while True:
            transfer: Transfer | None = None
            try:
                listing = await self._listed()
                transfer = Transfer(self.source, listing, self._partial(listing, report))
                followers = await self._brought(transfer)
            except SourceUnavailable:
                if transfer is not None and transfer.done > most:
                    pauses, most = iter(PAUSES), transfer.done
                pause = next(pauses, None)
                if pause is None:
                    raise
                await self.clock.sleep(pause)
            else:
                return listing, followers

    async def _brought(self, transfer: Transfer) -> Mapping[str, Follower]:
        await self._call(functools.partial(self._reserve, transfer))
        algorithms = {"sha256"}
        if self.reference.checksum is not None:
            algorithms.add(self.reference.checksum.algorithm)
        followers = {name: Follower(name, self.threads) for name in sorted(algorithms)}
        try:
            await transfer.run(list(followers.values()))
        except OSError as error:
            raise self.room.explained(error) from error
        return followers

    async def _listed(self) -> Listing:
        """What is at the source, if it can be what was asked for."""
        listing = await self.source.list(self.reference.uri)
        if not listing.is_directory:
            [item] = listing.items
            item = dataclasses.replace(item, name=layout.file_name(item.name))
            return dataclasses.replace(listing, items=(item,))
        place, checksum = shown(self.reference.uri), self.reference.checksum
        if self.reference.unpack:
            raise DatasetInvalid(f"{place}: found a directory, expected an archive to unpack")
        if checksum is not None and checksum.algorithm != "sha256":
            raise DatasetInvalid(
                f"{place}: found a directory with a checksum by {checksum.algorithm}, expected one "
                "by sha256: the digest that the cache shows for it"
            )
        demand_names(place, listing)
        return listing

    def _reserve(self, transfer: Transfer) -> None:
        """Check the disk and take the room, with nobody in between who does the same."""
        with locking.held(self.place.locks / "room", shared=False):
            self.catalog.make_room(transfer.needed())
            transfer.prepare()

    def _partial(self, listing: Listing, report: Report) -> Partial:
        content = self._folder / OBJECT
        if self.reference.unpack:
            content = self._folder / ARCHIVE
        elif listing.is_directory:
            content /= layout.CONTENT
        return Partial(
            folder=self._folder,
            content=content,
            uri=self.reference.uri,
            report=report,
            room=self.room,
            threads=self.threads,
        )

    def _demand_checksum(self, listing: Listing, digests: Mapping[str, Follower]) -> None:
        expected = self.reference.checksum
        if expected is None or listing.is_directory:
            return
        [found] = digests[expected.algorithm].digests.values()
        self._demand(expected.algorithm, found)

    def _demand_budget(self, size: int) -> None:
        """Nobody may have known before how large it is, or is once it was unpacked."""
        if self.room.budget is not None and size > self.room.budget:
            raise self.room.full(size, evictable=0)

    def _demand(self, algorithm: str, found: str) -> None:
        expected = self.reference.checksum
        if expected is not None and (algorithm, found) != (expected.algorithm, expected.digest):
            raise DatasetInvalid(
                f"{shown(self.reference.uri)}: found content with {algorithm}:{found}, "
                f"expected {expected}"
            )

    async def _made(self, listing: Listing, digests: Mapping[str, Follower]) -> Record:
        """The object, complete, read-only and on the disk; and what is to be noted of it."""
        hashes = digests["sha256"].digests
        if self.reference.unpack:
            await self._unpack(listing)
            hashes = {}
        is_tree = listing.is_directory or self.reference.unpack
        make = self._made_tree if is_tree else self._made_file
        stop = threading.Event()
        made = functools.partial(make, hashes, fingerprint(listing), stop)
        return await self._call(made, stop=stop.set)

    async def _unpack(self, listing: Listing) -> None:
        # Imported here: most datasets are no archives, and all commands wire this cache.
        from anubis.adapters.dataset_cache.directory import unpacking

        archive = self._folder / ARCHIVE / listing.items[0].name
        target = self._folder / OBJECT / layout.CONTENT
        job = unpacking.Unpacking(
            archive=archive,
            target=target,
            name=shown(self.reference.uri),
            room=self.room,
            make_room=self.catalog.make_room,
        )
        await self._call(functools.partial(trees.delete, target.parent))
        await self._call(job.run, stop=job.stop)

    def _made_file(self, hashes: Mapping[str, str], listing: str, _: threading.Event) -> Record:
        [(name, sha256)] = hashes.items()
        path = self._folder / OBJECT / name
        trees.seal(path)
        linux.sync(path)
        linux.sync(path.parent)
        return self._record(DatasetKind.FILE, sha256, path, listing)

    def _made_tree(self, hashes: Mapping[str, str], listing: str, stop: threading.Event) -> Record:
        root = self._folder / OBJECT / layout.CONTENT
        trees.seal(root)
        sha256 = trees.digest(root, hashes, stop)
        if not self.reference.unpack:
            self._demand("sha256", sha256)
        linux.sync_tree(root)
        return self._record(DatasetKind.DIRECTORY, sha256, root, listing)

    def _record(self, kind: DatasetKind, sha256: str, path: Path, listing: str) -> Record:
        is_file = kind is DatasetKind.FILE
        files, size = (1, path.stat().st_size) if is_file else trees.count(path)
        return Record(
            uri=self.reference.uri,
            checksum=str(self.reference.checksum or ""),
            unpack=self.reference.unpack,
            kind=kind.value,
            object=layout.object_name(kind, sha256),
            name=path.name,
            digest=f"sha256:{sha256}",
            size=size,
            files=files,
            fetched=self.clock.now().isoformat(),
            listing=listing,
            stamp=records.stamp(path),
        )

    def _forget(self) -> None:
        trees.move_away(self._folder, self.place.removed)
        trees.clear(self.place.removed)

    async def _call(self, function: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
        try:
            return await self.threads.call(function, stop)
        except OSError as error:
            raise self.room.explained(error) from error


def fingerprint(listing: Listing) -> str:
    """The same while the source has the same; empty if the source cannot tell."""
    if not all(item.version for item in listing.items):
        return ""
    rows = sorted((item.name, item.version, item.size_bytes) for item in listing.items)
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


async def patiently(ask: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """What a source answers, after some attempts if need be."""
    for pause in PAUSES:
        try:
            return await ask()
        except SourceUnavailable:
            await clock.sleep(pause)
    return await ask()


def demand_names(place: str, listing: Listing) -> None:
    """Raise DatasetInvalid for names that lead out of their folder, or cannot all be there."""
    files = {item.name for item in listing.items}
    if not files:
        raise DatasetInvalid(f"{place}: found nothing there")
    if len(files) != len(listing.items):
        raise DatasetInvalid(f"{place}: a name is there twice")
    for name in files:
        if not layout.is_path(name):
            raise DatasetInvalid(f"{place}: found the name {name[:200]!r}, which is no path")
        if any(parent in files for parent in layout.parents(name)):
            raise DatasetInvalid(f"{place}: {name[:200]!r} lies below something that is a file")
