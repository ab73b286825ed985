"""A transfer of a dataset that somebody asked for, and what became of it."""

from __future__ import annotations

import dataclasses
import enum
from datetime import datetime

from anubis.domain.dataset import DatasetKey
from anubis.domain.errors import AnubisError


class FetchState(enum.StrEnum):
    """Where a fetch stands."""

    FETCHING = "fetching"
    DONE = "done"  #: the dataset is in the cache
    FAILED = "failed"  #: it is not, and ``error`` says why
    CANCELED = "canceled"  #: nobody wanted it any more


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Fetch:
    """One transfer, as far as it has come. The key is that of the dataset it brings."""

    key: DatasetKey
    uri: str  #: as people may see it
    state: FetchState = FetchState.FETCHING
    wanted_by: tuple[str, ...]  #: who asked for it, in that order
    started_at: datetime
    ended_at: datetime | None = None
    done_bytes: int = 0
    total_bytes: int | None = None  #: None: the source does not tell
    error: AnubisError | None = None  #: why it failed

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state is not FetchState.FETCHING
