"""Runs, and what is asked about them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from anubis.domain.demand import HIGHEST_PRIORITY, LOWEST_PRIORITY
from anubis.domain.run import Cause, RunState
from anubis.entrypoints.api.resources.models.events import Event
from anubis.entrypoints.api.resources.models.kinds import (
    Answer,
    Body,
    Count,
    Filters,
    Line,
    Moment,
)
from anubis.entrypoints.api.resources.models.metrics import Environment, Metric
from anubis.entrypoints.api.resources.models.problems import DescriptorProblem

LARGEST_PAGE: Final = 500

Priority = Annotated[int, Field(ge=LOWEST_PRIORITY, le=HIGHEST_PRIORITY)]

Cursor = Annotated[str, StringConstraints(pattern=r"^[0-9a-f-]{1,36}$")]
"""What ``next`` of the page before said."""

Label = Annotated[str, StringConstraints(max_length=511, pattern=r"^[^=]+=.*$")]


class Outcome(Answer):
    """How a run ended."""

    state: RunState
    """One of the terminal states."""
    reason: str
    """One sentence: what happened and, where we know it, what to do."""
    cause: Cause
    """The same, for programs."""
    unit: str | None
    """The program that decided."""
    exit_code: int | None
    signal: int | None
    last_lines: list[str]
    """The end of its output, when it failed."""


class Demand(Answer):
    """What a run asks of the machine. Zero asks for nothing in particular."""

    cpus: float
    memory_bytes: Count
    gpus: Count
    exclusive: bool
    """Nothing else of ours may run on the engine meanwhile."""
    concurrency: int | None
    """Most runs of the same benchmark at once."""


class Run(Answer):
    """One execution of one descriptor. Moments are in UTC."""

    id: str
    """A UUID of version 7: sorts by time of submission."""
    state: RunState
    benchmark: str
    """What stays the same between runs over time: the trend line."""
    engine: str
    descriptor_sha: str
    """SHA-256 of the exact bytes that were submitted."""
    submitter: str
    labels: dict[str, str]
    family: str | None
    """Runs that belong together: the firings of a schedule, for instance."""
    priority: int
    demand: Demand
    waiting_for: str | None
    """Why a run that has not started waits, in a sentence; null in the answer to a submission."""
    version: int
    """Grows with every stored change."""
    submitted_at: datetime
    state_since: datetime
    deadline: datetime
    """When the present state has lasted too long."""
    started_at: datetime | None
    ended_at: datetime | None
    """When its program ended."""
    cancel_requested_at: datetime | None
    elapsed_seconds: float
    """How long the program has run, or ran."""
    outcome: Outcome | None


class Status(Answer):
    """A run with all that is known about it."""

    run: Run
    events: list[Event]
    metrics: list[Metric]
    environment: Environment | None


class Submitted(Answer):
    """A run that is now durable, and what its author should know."""

    run: Run
    warnings: list[DescriptorProblem]


class RunPage(Answer):
    """Some runs, newest first."""

    runs: list[Run]
    next: str | None
    """The ``cursor`` of the next page; null: this is the last one."""


class QueuePage(Answer):
    """Runs that wait, in the order in which they would start as far as that is known."""

    runs: list[Run]
    next: str | None
    """The ``cursor`` of the next page; null: this is the last one."""


class RunCounts(Answer):
    """How many runs are in each state."""

    counts: dict[RunState, int]
    """States without runs are left out."""


class Submission(Body):
    """A descriptor to run."""

    descriptor: str
    """The TOML text."""
    name: Line = "descriptor.toml"
    """Its file name: for messages, and for the benchmark's name where the descriptor has none."""
    directory: Annotated[str, StringConstraints(max_length=4096, pattern=r"^[^\x00]*$")] = ""
    """Where the run starts: an absolute path on the machine of the service. One that does not exist
    there is not used: the run starts in an empty folder of its own, and a warning says so."""
    script: Line = ""
    """The archive of its code, which `PUT /scripts/{name}` has left here."""
    engine: Line | None = None
    """Wins over the descriptor."""
    priority: Priority | None = None
    """Wins over the descriptor. Higher ones leave the queue first."""
    now: bool = False
    """Once and now, whatever the descriptor's schedule says."""


class SubmissionOptions(Filters):
    """What accompanies a descriptor that is sent as it is."""

    name: Line = Field("descriptor.toml", examples=["train.toml"])
    """File name of the descriptor, if it is sent as it is."""
    directory: Annotated[str, StringConstraints(max_length=4096, pattern=r"^[^\x00]*$")] = Field(
        "", examples=[""]
    )
    """Where the run starts, on the machine of the service."""
    script: Line = Field("", examples=[""])
    """The archive of its code, which `PUT /scripts/{name}` has left here."""
    engine: Line | None = Field(None, examples=["process"])
    """Wins over the descriptor."""
    priority: Priority | None = Field(None, examples=[0])
    """Wins over the descriptor."""
    now: bool = Field(False, examples=[True])
    """Once and now, whatever the descriptor's schedule says."""


class ManifestOptions(SubmissionOptions):
    """What accompanies a descriptor of which the Kubernetes objects are wanted."""

    namespace: Line = Field("", examples=["benchmarks"])
    """As if runs were in this namespace."""


class Resubmission(Body):
    """What is different when a run is submitted again. Nothing need be."""

    engine: Line | None = None
    """Wins over the descriptor."""
    priority: Priority | None = None
    """Wins over the descriptor."""


class RunFilters(Filters):
    """Which runs. Every filter given must hold."""

    state: list[RunState] = Field(default_factory=list, max_length=10, examples=[["SUCCEEDED"]])
    """Only runs in one of these states; may be repeated."""
    benchmark: Annotated[str, Field(max_length=1024)] | None = Field(None, examples=["train"])
    """Only runs of this benchmark."""
    label: list[Label] = Field(default_factory=list, max_length=10, examples=[["team=vision"]])
    """Only runs with this label, as ``name=value``; may be repeated, then with all of them."""
    family: Annotated[str, Field(max_length=1024)] | None = Field(
        None, examples=["018f8583-4a00-7000-9fec-f0f8a0d2f3a7"]
    )
    """Only runs of this family."""
    user: Line | None = Field(None, examples=["ada"])
    """Only runs that this user submitted."""
    since: Moment | None = Field(None, examples=["2024-05-17T00:00:00Z"])
    """Only runs submitted at this moment (ISO 8601) or later. Without a time zone it is UTC."""
    until: Moment | None = Field(None, examples=["2034-05-18T00:00:00Z"])
    """Only runs submitted before this moment."""
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = Field(50, examples=[20])
    """How many at most."""
    cursor: Cursor | None = Field(None, examples=["018f8583-4a00-7000-9fec-f0f8a0d2f3a7"])
    """``next`` of the page before."""


class QueueFilters(Filters):
    """Which part of the queue."""

    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = Field(50, examples=[20])
    """How many at most."""
    cursor: Annotated[str, StringConstraints(pattern=r"^-?[0-9]{1,3}\.[0-9a-f-]{1,36}$")] | None = (
        Field(None, examples=["0.018f8583-4a00-7000-9fec-f0f8a0d2f3a7"])
    )
    """``next`` of the page before."""
