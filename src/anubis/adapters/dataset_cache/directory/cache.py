"""The port's promises, kept in a folder. What is here is looked up, what is not is fetched once."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

from anubis.adapters.dataset_cache.directory import journal, locking, room, verifying
from anubis.adapters.dataset_cache.directory.catalog import Catalog
from anubis.adapters.dataset_cache.directory.fetching import Fetching, fingerprint, patiently
from anubis.adapters.dataset_cache.directory.layout import Layout
from anubis.adapters.dataset_cache.directory.threads import Threads
from anubis.domain.dataset import (
    Dataset,
    DatasetKey,
    Progress,
    Reference,
    Report,
    refuse_secrets,
    scheme_of,
    shown,
)
from anubis.domain.errors import DatasetInvalid, DatasetNotFound, SourceUnavailable, UserError
from anubis.domain.run import RunId
from anubis.ports.clock import Clock
from anubis.ports.dataset_source import DatasetSource

T = TypeVar("T")

WAIT_SECONDS: Final = 0.05
"""How soon those who wait see that a transfer has ended, or its process was killed."""

TELL_SECONDS: Final = 1.0
"""How often those who wait tell how somebody else's transfer goes on."""


class DirectoryDatasetCache:
    """See the package. Create as many as you like on the same folder, in any process."""

    def __init__(
        self,
        folder: Path,
        sources: Mapping[str, DatasetSource],
        clock: Clock,
        *,
        budget: int | None = None,
        measure: Callable[[Path], room.DiskSize] = room.measured,
    ) -> None:
        self._place = Layout(folder)
        self._sources = sources  # by scheme, and perhaps loaded when one is asked for
        self._clock = clock
        self._room = room.Room(folder=folder, budget=budget, measure=measure)
        self._catalog = Catalog(self._place, self._room)
        self._threads = Threads()

    async def fetch(self, reference: Reference, *, run: RunId | None, report: Report) -> Dataset:
        """See the port."""
        asked = self._clock.now()
        source = self._source(reference.uri)
        await self._call(self._place.make)
        if found := await self._hit(reference, run, source):
            return found
        async with self._alone(reference, report):
            if found := await self._hit(reference, run, source, since=asked):
                return found
            fetching = Fetching(
                reference=reference,
                source=source,
                place=self._place,
                catalog=self._catalog,
                room=self._room,
                threads=self._threads,
                clock=self._clock,
            )
            await fetching.fetch(run, report)
            now = self._clock.now()
            made = await self._call(functools.partial(self._catalog.use, reference.key, run, now))
        assert made is not None, "published a moment ago"
        return made

    async def unpin(self, run: RunId) -> None:
        """See the port."""
        await self._looking(functools.partial(self._catalog.unpin, run), None)

    async def pins(self) -> Sequence[RunId]:
        """See the port."""
        return await self._looking(self._catalog.pinned, ())

    async def unpin_silent(self, before: datetime) -> None:
        """Let go for all runs whose pins nobody has touched since then.

        For folders whose users cannot know when a run is over: they touch the folder of its pins
        while they live.
        """
        await self._looking(functools.partial(self._catalog.unpin_silent, before), None)

    async def list(self) -> Sequence[Dataset]:
        """See the port."""
        return await self._looking(self._catalog.all, ())

    async def get(self, key: str) -> Dataset:
        """See the port."""
        found = [dataset for dataset in await self.list() if dataset.key.startswith(key)]
        if not found or not key:
            raise DatasetNotFound(f"no dataset of the cache has a key that begins with {key!r}")
        if len(found) > 1:
            keys = ", ".join(dataset.key[: len(key) + 8] for dataset in found[:5])
            raise UserError(f"several datasets have a key that begins with {key!r}: {keys}")
        return found[0]

    async def verify(self, key: DatasetKey) -> bool:
        """See the port. A run that uses it keeps what it has, and the next one fetches anew."""
        dataset = await self.get(key)
        reading = verifying.Reading(dataset)
        if await self._call(reading.is_unchanged, stop=reading.stop):
            return True
        await self._call(functools.partial(self._catalog.damage, dataset.key))
        return False

    async def evict(self, key: DatasetKey) -> int:
        """See the port."""
        await self._call(self._place.make)
        return await self._call(functools.partial(self._catalog.evict, key))

    async def shrink(self, most_bytes: int) -> Sequence[Dataset]:
        """See the port."""
        return await self._looking(functools.partial(self._catalog.shrink, most_bytes), ())

    def _source(self, uri: str) -> DatasetSource:
        refuse_secrets(uri)
        scheme = scheme_of(uri)
        if source := self._sources.get(scheme):
            return source
        known = ", ".join(sorted(filter(None, self._sources)))
        raise DatasetInvalid(f"{shown(uri)}: found the scheme {scheme!r}, expected one of: {known}")

    async def _hit(
        self,
        reference: Reference,
        run: RunId | None,
        source: DatasetSource,
        since: datetime | None = None,
    ) -> Dataset | None:
        """The dataset, if it is here and what the source has. ``since``: or fetched since then."""
        if reference.checksum is None and not await self._is_current(reference, source, since):
            return None
        now = self._clock.now()
        return await self._call(functools.partial(self._catalog.use, reference.key, run, now))

    async def _is_current(
        self, reference: Reference, source: DatasetSource, since: datetime | None
    ) -> bool:
        """Whether a copy without a checksum is what the source has now."""
        known = await self._call(functools.partial(self._catalog.find, reference.key))
        if known is None or since is not None:
            return known is not None and since is not None and known.fetched_at >= since
        try:
            listing = await patiently(lambda: source.list(reference.uri), self._clock)
        except SourceUnavailable as error:
            raise SourceUnavailable(
                f"{error}. A copy of {known.fetched_at:%Y-%m-%d %H:%M} UTC is in the cache; "
                "without a checksum nobody knows whether it is still right, so it is not used. "
                "Give the checksum to use it without asking the source"
            ) from error
        return known.record["listing"] == fingerprint(listing) != ""

    @contextlib.asynccontextmanager
    async def _alone(self, reference: Reference, report: Report) -> AsyncIterator[None]:
        """Be the one who transfers; wait while another process, or task, is."""
        path = self._place.locks / reference.key
        told = self._clock.monotonic()
        while (lock := locking.try_lock(path)) is None:
            await self._clock.sleep(WAIT_SECONDS)
            if self._clock.monotonic() - told >= TELL_SECONDS:
                told = self._clock.monotonic()
                done, total = journal.progress(self._place.partial / reference.key)
                report(Progress(uri=reference.uri, done_bytes=done, total_bytes=total))
        try:
            yield
        finally:
            locking.let_go(path, lock)

    async def _looking(self, function: Callable[[], T], nothing: T) -> T:
        """As ``_call``, for a cache that may not exist yet: looking does not create it."""
        if not self._place.removed.is_dir():
            return nothing
        return await self._call(function)

    async def _call(self, function: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
        try:
            return await self._threads.call(function, stop)
        except OSError as error:
            raise self._room.explained(error) from error
