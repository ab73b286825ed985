"""A cache of datasets whose transfers a test plays: they wait, report, fail or end as told."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence

from anubis.domain.dataset import Dataset, DatasetKey, DatasetKind, Progress, Reference, Report
from anubis.domain.errors import AnubisError, DatasetNotFound, NotPossible, UserError
from anubis.domain.run import RunId
from anubis.ports.clock import Clock

SIZE = 2048
"""Bytes of every dataset that is not given another size."""


class PlayedCache:
    """Keeps the promises of ``DatasetCache`` without any content."""

    def __init__(self, clock: Clock) -> None:
        self.held: dict[DatasetKey, Dataset] = {}
        self.asked: list[Reference] = []  #: every transfer that began
        self.stopped: list[DatasetKey] = []  #: those that were canceled
        self.damaged: set[DatasetKey] = set()
        self.error: AnubisError | None = None  #: what transfers fail of
        self.gate = asyncio.Event()  #: transfers and verifications wait for it
        self.gate.set()
        self._clock = clock

    def hold(self, reference: Reference, **given: object) -> Dataset:
        """Have a dataset there; ``given`` are fields of it."""
        now = self._clock.now()
        found = Dataset(
            key=reference.key,
            reference=reference,
            kind=DatasetKind.FILE,
            path=f"/cache/{reference.key}",
            digest=f"sha256:{reference.key}",
            size_bytes=SIZE,
            files=1,
            fetched_at=now,
            used_at=now,
        )
        self.held[found.key] = dataclasses.replace(found, **given)  # type: ignore[arg-type]
        return self.held[found.key]

    async def fetch(self, reference: Reference, *, run: RunId | None, report: Report) -> Dataset:
        """Report half of it, wait for the gate, then fail or have it."""
        if reference.key in self.held:
            return self.held[reference.key]
        self.asked.append(reference)
        report(Progress(uri=reference.uri, done_bytes=SIZE // 2, total_bytes=SIZE))
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.stopped.append(reference.key)
            raise
        if self.error is not None:
            raise self.error
        return self.hold(reference, pinned_by=() if run is None else (run,))

    async def unpin(self, run: RunId) -> None:
        """Let go of what a run used."""
        for key, found in self.held.items():
            rest = tuple(one for one in found.pinned_by if one != run)
            self.held[key] = dataclasses.replace(found, pinned_by=rest)

    async def pins(self) -> Sequence[RunId]:
        """Who uses something."""
        return [RunId(one) for found in self.held.values() for one in found.pinned_by]

    async def list(self) -> Sequence[Dataset]:
        """All, last used first."""
        return sorted(self.held.values(), key=lambda one: one.used_at, reverse=True)

    async def get(self, key: str) -> Dataset:
        """By key, or by its beginning."""
        found = [one for name, one in self.held.items() if name.startswith(key)]
        if not found:
            raise DatasetNotFound(f"no dataset has a key that starts with {key!r}")
        if len(found) > 1:
            raise UserError(f"several datasets have a key that starts with {key!r}")
        return found[0]

    async def verify(self, key: DatasetKey) -> bool:
        """False for those that a test damaged."""
        await self.get(key)
        await self.gate.wait()
        if key not in self.damaged:
            return True
        del self.held[key]
        return False

    async def evict(self, key: DatasetKey) -> int:
        """Forget one that nobody uses."""
        found = await self.get(key)
        if found.pinned_by:
            raise NotPossible(f"used by {', '.join(found.pinned_by)}")
        del self.held[key]
        return found.size_bytes

    async def shrink(self, most_bytes: int) -> Sequence[Dataset]:
        """Forget those used longest ago."""
        gone = list[Dataset]()
        for found in reversed(await self.list()):
            if sum(one.size_bytes for one in self.held.values()) <= most_bytes:
                break
            if not found.pinned_by:
                gone.append(self.held.pop(found.key))
        return gone
