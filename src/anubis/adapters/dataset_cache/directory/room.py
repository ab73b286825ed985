"""How much may be written: what is free, less a reserve, and what the budget leaves."""

from __future__ import annotations

import dataclasses
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from anubis.domain.errors import AnubisError, StorageFull, StoreUnavailable

MOST_RESERVE: Final = 5 * 1024**3
"""Bytes kept free for others on the same disk: logs, metrics and the database go on growing, and a
full disk stops all of them. Five suffices for hours of output of the busiest runs we measured."""

RESERVE_SHARE: Final = 20
"""On small disks the reserve is one part in so many."""

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class DiskSize(Protocol):
    """The fields of ``os.statvfs`` that count here."""

    @property
    def f_frsize(self) -> int:
        """Bytes of a block."""
        ...

    @property
    def f_blocks(self) -> int:
        """Blocks in all."""
        ...

    @property
    def f_bavail(self) -> int:
        """Blocks that we may take."""
        ...


def measured(folder: Path) -> DiskSize:
    """The disk below a folder."""
    return os.statvfs(folder)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """How large the disk below a folder is, and how much of it is ours."""

    folder: Path
    budget: int | None
    measure: Callable[[Path], DiskSize]

    @property
    def free(self) -> int:
        """Bytes that are free."""
        disk = self.measure(self.folder)
        return disk.f_bavail * disk.f_frsize

    @property
    def reserve(self) -> int:
        """Bytes of them that stay free."""
        disk = self.measure(self.folder)
        return min(MOST_RESERVE, disk.f_blocks * disk.f_frsize // RESERVE_SHARE)

    def lacking(self, needed: int, used: int) -> int:
        """Bytes that must be freed before ``needed`` more fit beside the ``used`` ones."""
        lacking = needed - (self.free - self.reserve)
        if self.budget is not None:
            lacking = max(lacking, used + needed - self.budget)
        return max(0, lacking)

    def demand_reserve(self, written: int) -> None:
        """Raise StorageFull once the reserve is touched, or once as much was written as the budget
        has in all: for content of unknown size.
        """
        if self.free < self.reserve or (self.budget is not None and written > self.budget):
            raise self.full(None, evictable=0)

    def full(self, needed: int | None, *, evictable: int) -> StorageFull:
        """The error that says what is needed, what there is, and where."""
        need = "more bytes are" if needed is None else f"{needed:,} bytes are"
        budget = f", the budget is {self.budget:,} (datasets_bytes)" if self.budget else ""
        return StorageFull(
            f"no room for the dataset in {self.folder}: {need} needed, {self.free:,} are free, of "
            f"which {self.reserve:,} stay in reserve{budget}; datasets that no run uses take "
            f"{evictable:,}. Evict datasets, or move the cache (ANUBIS_DATASETS)"
        )

    def explained(self, error: OSError) -> AnubisError:
        """A disk's error in words."""
        if error.errno in _FULL:
            return self.full(None, evictable=0)
        where = error.filename or self.folder
        return StoreUnavailable(f"{where} cannot be written: {error.strerror}")
