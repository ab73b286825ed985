"""Hold datasets on this machine, each once, and never half of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from anubis.domain.dataset import Dataset, DatasetKey, Reference, Report
from anubis.domain.run import RunId


class DatasetCache(Protocol):
    """Shared by all processes of this machine that use the same folder.

    What it returns is whole and verified. Killing any process at any moment leaves nothing that is
    taken for a dataset, and nothing that stays locked.
    """

    async def fetch(self, reference: Reference, *, run: RunId | None, report: Report) -> Dataset:
        """Have the dataset here; a hit costs milliseconds, whatever its size.

        Of all who ask for the same at the same time, in whichever process, one transfers it and the
        others wait. A transfer that was cut off goes on where it stopped. With ``run``, the dataset
        is pinned for that run before this returns, until ``unpin``. Cancelling the call stops the
        transfer.

        Raises DatasetInvalid (with expected and found, on a wrong checksum), SourceUnavailable
        after several attempts, StorageFull before the disk is, and before a byte is transferred
        where the source tells sizes.
        """
        ...

    async def unpin(self, run: RunId) -> None:
        """Let go of all that was pinned for a run. Safe to repeat."""
        ...

    async def pins(self) -> Sequence[RunId]:
        """The runs for which something is pinned."""
        ...

    async def list(self) -> Sequence[Dataset]:
        """All datasets, last used first."""
        ...

    async def get(self, key: str) -> Dataset:
        """The dataset with this key, or the only one whose key begins so. Raises DatasetNotFound.

        Raises UserError if several do.
        """
        ...

    async def verify(self, key: DatasetKey) -> bool:
        """Read all of it again; False if it is not what was fetched, and then it is gone."""
        ...

    async def evict(self, key: DatasetKey) -> int:
        """Forget a dataset; the bytes that became free. Raises NotPossible while it is pinned."""
        ...

    async def shrink(self, most_bytes: int) -> Sequence[Dataset]:
        """Evict what is not pinned, least recently used first, until the rest takes at most so
        many bytes; what was evicted.
        """
        ...
