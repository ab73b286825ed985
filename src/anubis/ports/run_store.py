"""Remember runs, hand each one to at most one worker at a time, and never forget an event."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from anubis.domain.document import Document, Fingerprint
from anubis.domain.event import Event, NewEvent
from anubis.domain.metric import Summary
from anubis.domain.run import Outcome, Run, RunId, RunState, WorkerId


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """One step in the table of moves. The store writes the STATE event that says so."""

    to: RunState
    at: datetime
    deadline: datetime  #: of the state moved to
    message: str  #: a sentence for people, e.g. "2 runs ahead"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """What a worker wants to store about a run it holds. All of it or nothing is stored."""

    run_id: RunId
    moves: Sequence[Move] = ()  #: in order; each must be legal after the one before
    notes: Sequence[NewEvent] = ()  #: stored before the moves
    outcome: Outcome | None = None
    fingerprint: Fingerprint | None = None
    summaries: Sequence[Summary] | None = None  #: replaces all summaries of the run
    release: bool = False  #: give the lease back; a terminal move always does


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RunQuery:
    """Which runs, newest first. Every filter given must hold."""

    states: Collection[RunState] = ()
    benchmark: str | None = None
    label: tuple[str, str] | None = None
    family: str | None = None
    before: RunId | None = None  #: keyset cursor: only runs older than this one
    limit: int = 50


class RunStore(Protocol):
    """The one place that decides. Methods are atomic and safe against concurrent processes.

    Every method may raise StoreUnavailable; retrying is then safe, for a change that was already
    stored is refused (``LeaseLost``, or the id exists) rather than stored twice. Unless they say
    otherwise, methods about one run raise RunNotFound if there is no such run.
    """

    async def add(self, run: Run, document: Document, plan: str, message: str) -> None:
        """Store a new run in SUBMITTED with its document, its plan and its first event.

        ``plan`` is JSON text that only the runtime reads. It may hold secrets of the submitter's
        environment, so the store forgets it in the transaction of the terminal move.

        When this returns the run survives a crash of everything. Adding an id that exists with
        the same descriptor changes nothing; with another one it raises NotPossible.
        """
        ...

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

    async def lease(
        self,
        worker: WorkerId,
        *,
        now: datetime,
        duration: timedelta,
        states: Collection[RunState],
        limit: int,
        urgent_only: bool = False,
    ) -> Sequence[Run]:
        """Give ``worker`` up to ``limit`` runs in these active states, oldest first.

        A run qualifies if nobody holds it or its lease ended before ``now``; with
        ``urgent_only``, only if also somebody asked to cancel it or its deadline passed (cost
        does not grow with the runs that wait). Two workers calling at the same moment never
        receive the same run.
        """
        ...

    async def renew(
        self, worker: WorkerId, run_ids: Collection[RunId], *, now: datetime, duration: timedelta
    ) -> frozenset[RunId]:
        """Extend the leases ``worker`` still holds among ``run_ids``, and say which those are."""
        ...

    async def release_all(self, worker: WorkerId) -> None:
        """Give back every lease of ``worker``: it has just started again under its old name."""
        ...

    async def apply(self, worker: WorkerId, step: Step) -> Run:
        """Store a step of a run that ``worker`` holds, and give the run as it is now.

        Raises LeaseLost if another worker holds the run or nobody does, IllegalMove if the table
        forbids a move; nothing is stored then. A lease that has ended but was not given to
        anybody else is still good. ``started_at`` is set by the move to RUNNING. The
        terminal move sets ``ended_at``: to when the run became FINISHING, if it did.
        """
        ...

    async def request_cancel(self, run_id: RunId, *, now: datetime, by: str) -> Run:
        """Note that somebody wants the run to stop; whoever holds it will act.

        Asking again changes nothing. Raises NotPossible for a run that has ended.
        """
        ...

    async def active(self, limit: int) -> Sequence[Run]:
        """Runs that have not ended, oldest first."""
        ...

    async def events(self, run_id: RunId, *, after: int = 0, limit: int = 1000) -> Sequence[Event]:
        """Events with a number above ``after``, in order."""
        ...

    async def document(self, run_id: RunId) -> Document:
        """The exact descriptor of a run."""
        ...

    async def plan(self, run_id: RunId) -> str:
        """The plan given to ``add``. Raises NotPossible once the run has ended."""
        ...

    async def fingerprint(self, run_id: RunId) -> Fingerprint | None:
        """The environment the run had, once it is known."""
        ...

    async def summaries(self, run_id: RunId) -> Sequence[Summary]:
        """The statistics of the run's metrics, ordered by unit, source and name."""
        ...

    async def delete(self, run_id: RunId) -> None:
        """Forget a run that has ended, with all its rows. Raises NotPossible while it is active."""
        ...

    def change_token(self) -> int:
        """A number that differs from the one before if anybody stored anything in between.

        Any process counts, not only this one. Cheap enough to ask a hundred times a second (no
        thread, no lock), so that a watcher polls this and reads only when it changed. Only
        tokens of the same store object can be compared.
        """
        ...
