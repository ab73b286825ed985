"""Datasets in memory, for tests of stages: nothing is on a disk, and no path can be opened.

One process, no archives, no parts: what it shares with the real one is what stages rely on.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime

from anubis.domain.dataset import (
    Dataset,
    DatasetKey,
    DatasetKind,
    Progress,
    Reference,
    Report,
    refuse_secrets,
    scheme_of,
    shown,
)
from anubis.domain.errors import (
    DatasetInvalid,
    DatasetNotFound,
    NotPossible,
    SourceUnavailable,
    UserError,
)
from anubis.domain.run import RunId
from anubis.ports.clock import Clock
from anubis.ports.dataset_source import DatasetSource, Listing

ATTEMPTS = 3


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Held:
    dataset: Dataset
    content: Mapping[str, bytes]
    versions: tuple[str, ...]


class MemoryDatasetCache:
    """A dictionary of datasets."""

    def __init__(self, sources: Mapping[str, DatasetSource], clock: Clock) -> None:
        self._sources = sources
        self._clock = clock
        self._held: dict[DatasetKey, _Held] = {}
        self._pins: dict[RunId, set[DatasetKey]] = {}
        self._alone: dict[DatasetKey, asyncio.Lock] = {}

    def content(self, key: DatasetKey) -> Mapping[str, bytes]:
        """The files of a dataset, by name."""
        return self._held[key].content

    async def fetch(self, reference: Reference, *, run: RunId | None, report: Report) -> Dataset:
        """See the port."""
        asked = self._clock.now()
        source = self._source(reference)
        async with self._alone.setdefault(reference.key, asyncio.Lock()):
            if not await self._is_here(reference, source, asked):
                await self._bring(reference, source, report)
            if run is not None:
                self._pins.setdefault(run, set()).add(reference.key)
            held = self._held[reference.key]
            used = dataclasses.replace(held.dataset, used_at=self._clock.now())
            self._held[reference.key] = dataclasses.replace(held, dataset=used)
            return self._shown(used)

    async def unpin(self, run: RunId) -> None:
        """See the port."""
        self._pins.pop(run, None)

    async def pins(self) -> Sequence[RunId]:
        """See the port."""
        return sorted(self._pins)

    async def list(self) -> Sequence[Dataset]:
        """See the port."""
        found = [self._shown(held.dataset) for held in self._held.values()]
        return sorted(found, key=lambda dataset: dataset.used_at, reverse=True)

    async def get(self, key: str) -> Dataset:
        """See the port."""
        found = [dataset for dataset in await self.list() if dataset.key.startswith(key)]
        if not found or not key:
            raise DatasetNotFound(f"no dataset of the cache has a key that begins with {key!r}")
        if len(found) > 1:
            raise UserError(f"several datasets have a key that begins with {key!r}")
        return found[0]

    async def verify(self, key: DatasetKey) -> bool:
        """Memory does not change by itself."""
        await self.get(key)
        return True

    async def evict(self, key: DatasetKey) -> int:
        """See the port."""
        if key not in self._held:
            raise DatasetNotFound(f"no dataset of the cache has the key {key}")
        dataset = self._shown(self._held[key].dataset)
        if dataset.pinned_by:
            raise NotPossible(f"dataset {key} is used by: {', '.join(dataset.pinned_by)}")
        del self._held[key]
        return dataset.size_bytes

    async def shrink(self, most_bytes: int) -> Sequence[Dataset]:
        """See the port."""
        evicted = []
        for dataset in reversed(await self.list()):
            if sum(held.dataset.size_bytes for held in self._held.values()) <= most_bytes:
                break
            if not dataset.pinned_by:
                del self._held[dataset.key]
                evicted.append(dataset)
        return evicted

    def _source(self, reference: Reference) -> DatasetSource:
        refuse_secrets(reference.uri)
        scheme = scheme_of(reference.uri)
        if scheme not in self._sources:
            raise DatasetInvalid(f"{shown(reference.uri)}: the scheme {scheme!r} is not known")
        return self._sources[scheme]

    async def _is_here(self, reference: Reference, source: DatasetSource, asked: datetime) -> bool:
        held = self._held.get(reference.key)
        if held is None or reference.checksum is not None:
            return held is not None
        if held.dataset.fetched_at >= asked:
            return True
        versions = _versions(await self._listed(reference, source))
        return all(versions) and versions == held.versions

    async def _listed(self, reference: Reference, source: DatasetSource) -> Listing:
        for _ in range(ATTEMPTS - 1):
            try:
                return await source.list(reference.uri)
            except SourceUnavailable:
                await self._clock.sleep(1)
        return await source.list(reference.uri)

    async def _bring(self, reference: Reference, source: DatasetSource, report: Report) -> None:
        if reference.unpack:
            raise DatasetInvalid(f"{shown(reference.uri)}: the cache in memory unpacks nothing")
        for attempt in range(ATTEMPTS):
            try:
                listing = await self._listed(reference, source)
                content = {item.name: b"" for item in listing.items}
                for item in listing.items:
                    async for piece in source.read(item, 0, None):
                        content[item.name] += piece
            except SourceUnavailable:
                if attempt == ATTEMPTS - 1:
                    raise
                await self._clock.sleep(1)
            else:
                break
        self._keep(reference, listing, content)
        size = self._held[reference.key].dataset.size_bytes
        report(Progress(uri=reference.uri, done_bytes=size, total_bytes=size))

    def _keep(self, reference: Reference, listing: Listing, content: Mapping[str, bytes]) -> None:
        whole = b"".join(content[name] for name in sorted(content))
        expected = reference.checksum
        if expected is not None:
            found = hashlib.new(expected.algorithm, whole, usedforsecurity=False).hexdigest()
            if found != expected.digest:
                raise DatasetInvalid(
                    f"{shown(reference.uri)}: found content with {expected.algorithm}:{found}, "
                    f"expected {expected}"
                )
        name = "content" if listing.is_directory else listing.items[0].name
        now = self._clock.now()
        dataset = Dataset(
            key=reference.key,
            reference=reference,
            kind=DatasetKind.DIRECTORY if listing.is_directory else DatasetKind.FILE,
            path=f"/memory/{reference.key}/{name}",
            digest=f"sha256:{hashlib.sha256(whole).hexdigest()}",
            size_bytes=len(whole),
            files=len(content),
            fetched_at=now,
            used_at=now,
        )
        held = _Held(dataset=dataset, content=content, versions=_versions(listing))
        self._held[reference.key] = held

    def _shown(self, dataset: Dataset) -> Dataset:
        runs = sorted(run for run, keys in self._pins.items() if dataset.key in keys)
        return dataclasses.replace(dataset, pinned_by=tuple(runs))


def _versions(listing: Listing) -> tuple[str, ...]:
    return tuple(item.version for item in listing.items)
