"""Look at runs, without changing any. What commands and routes need; a service answers it too."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from anubis.domain.document import Document, Fingerprint
from anubis.domain.event import Event
from anubis.domain.metric import Summary
from anubis.domain.run import Run, RunId, RunState


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RunQuery:
    """Which runs, newest first. Every filter given must hold."""

    states: Collection[RunState] = ()
    benchmark: str | None = None
    labels: Collection[tuple[str, str]] = ()  #: runs that have all of them
    family: str | None = None
    submitter: str | None = None
    since: datetime | None = None  #: submitted at this moment or later, as the id tells it
    until: datetime | None = None  #: submitted before this moment
    before: RunId | None = None  #: keyset cursor: only runs older than this one
    limit: int = 50


class RunReader(Protocol):
    """Every method may raise StoreUnavailable; retrying is safe. Unless they say otherwise,
    methods about one run raise RunNotFound if there is no such run.
    """

    async def get(self, run_id: RunId) -> Run:
        """Give the run as stored. Raises RunNotFound."""
        ...

    async def resolve(self, reference: str) -> RunId:
        """Find the run meant by a full id, a unique prefix, or ``last`` (the newest).

        Raises RunNotFound or RunAmbiguous; the message names some candidates.
        """
        ...

    async def page(self, query: RunQuery) -> Sequence[Run]:
        """Give at most ``query.limit`` runs, newest first, at a cost that does not grow."""
        ...

    async def counts(self) -> Mapping[RunState, int]:
        """How many runs are in each state; states without runs may be left out. Constant cost."""
        ...

    async def events(self, run_id: RunId, *, after: int = 0, limit: int = 1000) -> Sequence[Event]:
        """Events with a number above ``after``, in order."""
        ...

    async def document(self, run_id: RunId) -> Document:
        """The exact descriptor of a run."""
        ...

    async def fingerprint(self, run_id: RunId) -> Fingerprint | None:
        """The environment the run had, once it is known."""
        ...

    async def summaries(self, run_id: RunId) -> Sequence[Summary]:
        """The statistics of the run's metrics, ordered by unit, source and name."""
        ...
