"""What an engine sees of a run. The words in which engines talk to the stages."""

from __future__ import annotations

import dataclasses
import enum
from datetime import datetime


class Stream(enum.StrEnum):
    """Where a program wrote."""

    STDOUT = "stdout"
    STDERR = "stderr"


class EndCause(enum.StrEnum):
    """Why a unit ended."""

    EXITED = "exited"  #: by itself: exit code, or a signal from elsewhere
    CANCELED = "canceled"  #: we stopped it because somebody asked
    TIMED_OUT = "timed_out"  #: we stopped it because ``limits.running`` passed
    OUTPUT_LIMIT = "output_limit"  #: we stopped it because it wrote too much
    OUT_OF_MEMORY = "out_of_memory"  #: the kernel killed it; only engines with limits can tell
    DISMISSED = "dismissed"  #: we stopped it because the run had no more use for it
    NOT_STARTED = "not_started"  #: the program could not be executed; ``message`` says why
    NO_CAPACITY = "no_capacity"  #: no machine had room for it within ``limits.capacity``
    IMAGE_UNAVAILABLE = "image_unavailable"  #: its image cannot be had where it should run
    DATA_INVALID = "data_invalid"  #: what it reads is not there, or is not what its checksum says
    NOT_BROUGHT = "not_brought"  #: what it needs could not be brought, for another reason
    EVICTED = "evicted"  #: the engine put it off its machine; ``message`` says why
    LOST = "lost"  #: the engine lost sight of it; its exit is unknown


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class UnitWaiting:
    """The unit does not run yet, and why. Told before ``UnitStarted``, whenever that changes."""

    unit: str
    at: datetime
    message: str  #: half a sentence: "no node has room: 0/3 nodes are available: ..."


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class UnitStarted:
    """The program exists."""

    unit: str
    at: datetime
    where: str = ""  #: the machine, where the engine has several


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OutputChunk:
    """Bytes as the program wrote them; lines may be cut anywhere."""

    unit: str
    at: datetime
    stream: Stream
    data: bytes


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class EmittedChunk:
    """Bytes from the ``emit()`` pipe: JSON lines, cut anywhere."""

    unit: str
    at: datetime
    data: bytes


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class GpuReading:
    """One GPU at one instant."""

    index: int
    utilisation: float  #: 0 to 1
    memory_bytes: int
    power_watts: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ResourceReading:
    """What the whole process tree of a unit uses at one instant. Totals grow from the start."""

    unit: str
    at: datetime
    cpu_seconds: float  #: user and system, total since start, ended processes included
    memory_bytes: int  #: resident, sum over the tree
    read_bytes: int  #: from storage, total since start
    written_bytes: int  #: to storage, total since start
    threads: int
    processes: int  #: none: it is over, and only the totals mean something
    gpus: tuple[GpuReading, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class UnitEnded:
    """The last observation of a unit."""

    unit: str
    at: datetime
    cause: EndCause
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""  #: for all that went wrong around the program: what happened, for people
    left_behind: int = 0  #: processes the program left running, which we stopped
    cpu_seconds: float = 0.0  #: of the whole tree
    peak_memory_bytes: int = 0  #: of the largest single process


Observation = UnitWaiting | UnitStarted | OutputChunk | EmittedChunk | ResourceReading | UnitEnded


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class UnitReady:
    """The unit answers its readiness probe."""

    unit: str
    at: datetime


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class UnitUnready:
    """The unit does not answer its readiness probe, not yet or not any more."""

    unit: str
    at: datetime
    message: str  #: what it said, or why it said nothing


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class UnitSilent:
    """The unit has failed its liveness probe as often as it may."""

    unit: str
    at: datetime
    message: str


Condition = UnitReady | UnitUnready | UnitSilent
