"""Remember runs, hand each one to at most one worker at a time, and never forget an event."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from anubis.domain.document import Document, Fingerprint
from anubis.domain.event import NewEvent
from anubis.domain.metric import Summary
from anubis.domain.run import Outcome, Run, RunId, RunState, WorkerId
from anubis.ports.history import History
from anubis.ports.run_reader import RunReader


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


class RunStore(RunReader, History, Protocol):
    """The one place that decides. Methods are atomic and safe against concurrent processes.

    Every method may raise StoreUnavailable; retrying is then safe, for a change that was already
    stored is refused (``LeaseLost``, or the id exists) rather than stored twice. Unless they say
    otherwise, methods about one run raise RunNotFound if there is no such run.
    """

    async def add(
        self, run: Run, document: Document, plan: str, message: str, *, key: str | None = None
    ) -> Run:
        """Store a new run in SUBMITTED with its document, its plan and its first event.

        ``plan`` is JSON text that only the runtime reads. It may hold secrets of the submitter's
        environment, so the store forgets it in the transaction of the terminal move.

        When this returns the run survives a crash of everything. Adding an id that exists with
        the same descriptor changes nothing; with another one it raises NotPossible. The same
        holds for ``key``, which its submitter chose for this submission: a second run of theirs
        with that key is not stored. Gives the run as it is stored: the one that was there before,
        if there was one. A key is forgotten when its run is deleted.
        """
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
        among: Collection[RunId] | None = None,
    ) -> Sequence[Run]:
        """Give ``worker`` up to ``limit`` runs in these active states, oldest first.

        A run qualifies if nobody holds it or its lease ended before ``now``; with
        ``urgent_only``, only if also somebody asked to cancel it or its deadline passed (cost
        does not grow with the runs that wait); with ``among``, only these. Two workers calling at
        the same moment never receive the same run.
        """
        ...

    async def renew(
        self, worker: WorkerId, run_ids: Collection[RunId], *, now: datetime, duration: timedelta
    ) -> frozenset[RunId]:
        """Extend the leases ``worker`` still holds among ``run_ids``, and say which those are."""
        ...

    async def urgent(self, worker: WorkerId, *, now: datetime) -> Sequence[Run]:
        """Those that ``worker`` holds and that somebody asked to cancel, or whose deadline passed;
        oldest first. Cost does not grow with the runs that it holds.
        """
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

    async def heads(
        self, *, now: datetime, states: Collection[RunState], each: int
    ) -> Sequence[Run]:
        """The candidates of a queue: free runs in these states that have not started, ``each`` of
        every submitter's every benchmark on every engine, those with the highest priority first
        and among these the oldest.

        Runs whose cancel was requested are left out. Cost follows the number of groups, not the
        number of runs that wait. In no particular order between groups.
        """
        ...

    async def ahead(self, run: Run, *, states: Collection[RunState], limit: int) -> int:
        """How many runs of the same engine in these states that have not started have a higher
        priority, or the same and are older; counted up to ``limit``.
        """
        ...

    async def active_of(self, submitter: str, *, limit: int) -> int:
        """How many runs of a submitter have not ended, counted up to ``limit``."""
        ...

    async def with_key(self, submitter: str, key: str) -> Run | None:
        """The run that a submitter added with this key, if there is one."""
        ...

    async def active(self, limit: int) -> Sequence[Run]:
        """Runs that have not ended, oldest first."""
        ...

    async def plan(self, run_id: RunId) -> str:
        """The plan given to ``add``. Raises NotPossible once the run has ended."""
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
