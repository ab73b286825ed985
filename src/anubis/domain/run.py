"""A run: one execution of one concrete descriptor, its states and the legal moves between them."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NewType

from anubis.domain.demand import Demand

RunId = NewType("RunId", str)
"""A lower-case UUID, version 7: sorts by time of submission. ``action_id`` on the old wire."""

WorkerId = NewType("WorkerId", str)
"""Who may hold a lease. Unique among living workers."""


class RunState(enum.StrEnum):
    """Where a run stands. The legal moves are in ``MOVES``."""

    SUBMITTED = "SUBMITTED"  #: accepted and durable, nobody has looked at it
    FETCHING = "FETCHING"  #: its data is being brought
    QUEUED = "QUEUED"  #: ready, waits for room on the engine
    STARTING = "STARTING"  #: given to the engine, not yet known to run
    RUNNING = "RUNNING"  #: the program runs
    FINISHING = "FINISHING"  #: the program ended; output and metrics are being stored
    SUCCEEDED = "SUCCEEDED"  #: the deciding unit ended with exit code 0
    FAILED = "FAILED"  #: the benchmark's own fault: exit code, signal, time-out
    CANCELED = "CANCELED"  #: somebody asked for it
    ERROR = "ERROR"  #: our fault or the environment's

    @property
    def is_terminal(self) -> bool:
        """Whether the run has ended for good."""
        return self in TERMINAL


TERMINAL = frozenset(
    {RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELED, RunState.ERROR},
)
ACTIVE = frozenset(RunState) - TERMINAL

BEFORE_START = frozenset({RunState.SUBMITTED, RunState.FETCHING, RunState.QUEUED})
"""States in which no engine knows the run yet."""

UNDER_WAY = ACTIVE - BEFORE_START
"""States in which a run has a place on its engine."""

_S = RunState
MOVES: Mapping[RunState, frozenset[RunState]] = MappingProxyType(
    {
        _S.SUBMITTED: frozenset({_S.FETCHING, _S.QUEUED, _S.CANCELED, _S.ERROR}),
        _S.FETCHING: frozenset({_S.QUEUED, _S.FAILED, _S.CANCELED, _S.ERROR}),
        _S.QUEUED: frozenset({_S.FETCHING, _S.STARTING, _S.CANCELED, _S.ERROR}),
        _S.STARTING: frozenset({_S.RUNNING, _S.FAILED, _S.CANCELED, _S.ERROR}),
        _S.RUNNING: frozenset({_S.FINISHING, _S.ERROR}),
        _S.FINISHING: frozenset(TERMINAL),
        _S.SUCCEEDED: frozenset(),
        _S.FAILED: frozenset(),
        _S.CANCELED: frozenset(),
        _S.ERROR: frozenset(),
    },
)
"""From each state, where a run may go next. RUNNING reaches its end through FINISHING, so that
output is kept whatever happened; RUNNING to ERROR is for a deadline of our own that passed. A run
that must fetch something does so when it is its turn, so that no transfer disturbs the measurement
of another: then it goes from QUEUED to FETCHING and back."""


class Cause(enum.StrEnum):
    """Why a run ended, for programs: what people read is the outcome's reason."""

    EXITED = "exited"  #: a unit ended by itself, with an exit code
    SIGNALED = "signaled"  #: a signal from elsewhere ended a unit
    OUT_OF_MEMORY = "out_of_memory"  #: the kernel ended a unit; only engines with limits can tell
    TIMED_OUT = "timed_out"  #: ``limits.running`` passed
    OUTPUT_LIMIT = "output_limit"  #: ``limits.output_size`` was reached
    CANCELED = "canceled"  #: somebody asked for it
    NOT_STARTED = "not_started"  #: a program could not be executed
    NOT_READY = "not_ready"  #: ``limits.readiness`` passed before a unit was ready
    NOT_ALIVE = "not_alive"  #: a unit no longer answered its liveness probe
    DATA_INVALID = "data_invalid"  #: data is not there, or is not what its checksum says
    IMAGE_UNAVAILABLE = "image_unavailable"  #: an image cannot be had
    NOT_BROUGHT = "not_brought"  #: data or code could not be brought, for another reason
    NO_CAPACITY = "no_capacity"  #: no machine had room within ``limits.capacity``
    EVICTED = "evicted"  #: the engine put a unit off its machine
    OVERDUE = "overdue"  #: another state than RUNNING lasted too long
    LOST = "lost"  #: the engine lost sight of a unit
    UNKNOWN = "unknown"  #: we could not carry on; or it ended before causes were kept


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a run ended, or will end once FINISHING is over, with a reason a person can act on."""

    state: RunState  #: one of ``TERMINAL``
    reason: str  #: one sentence: what happened and, where we know it, what to do
    cause: Cause = Cause.UNKNOWN
    unit: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    last_lines: tuple[str, ...] = ()  #: the end of the deciding unit's output, when it failed

    def __post_init__(self) -> None:
        if not self.state.is_terminal:
            raise ValueError(f"an outcome needs a terminal state, not {self.state}")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """A promise with a deadline: until ``ends``, only ``worker`` may move the run."""

    worker: WorkerId
    ends: datetime


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One execution of one descriptor. Never changed in place."""

    id: RunId
    state: RunState
    version: int  #: grows by one with every stored change
    benchmark: str  #: what stays the same between runs over time: the trend line
    engine: str
    descriptor_sha: str  #: SHA-256 of the exact bytes the user gave
    submitter: str
    labels: tuple[tuple[str, str], ...] = ()  #: sorted by key
    family: str | None = None
    priority: int = 0  #: higher ones leave the queue first
    demand: Demand = dataclasses.field(default_factory=Demand)
    submitted_at: datetime
    state_since: datetime
    deadline: datetime  #: when the present state has lasted too long; terminal: of no meaning
    started_at: datetime | None = None  #: when it entered RUNNING
    ended_at: datetime | None = None
    """Once the run has ended: when its program did, that is since when it was FINISHING. For a run
    that was not, when it entered its terminal state. Storing the output is not part of its time.
    """
    cancel_requested_at: datetime | None = None
    lease: Lease | None = None
    outcome: Outcome | None = None

    def elapsed(self, now: datetime) -> timedelta:
        """How long the program has run, or ran. Zero before it starts."""
        if self.started_at is None:
            return timedelta()
        if self.state is RunState.FINISHING:
            return self.state_since - self.started_at
        return (self.ended_at or now) - self.started_at
