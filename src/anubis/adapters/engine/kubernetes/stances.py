"""The answers to where a unit stands, as values."""

from __future__ import annotations

import dataclasses
import enum
from datetime import datetime

from anubis.adapters.engine.kubernetes.parting import Parting
from anubis.domain.observation import EndCause


class Wait(enum.StrEnum):
    """What a unit waits for, in the order in which that happens."""

    QUEUE = "queue"  #: its workload is suspended
    POD = "pod"  #: the controllers have not made its pod
    NODE = "node"  #: the scheduler has not found a node
    ADMISSION = "admission"  #: its node has not said anything of it
    PREPARATION = "preparation"  #: volumes and network
    IMAGE = "image"
    DATA = "data"  #: the container ``fetch`` works
    RECORDER = "recorder"
    CREATION = "creation"  #: its node has all it needs, and cannot make the container


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """It does not run yet. The message stays the same while the situation does."""

    why: Wait
    since: datetime
    what: str  #: what it waits for: ``waiting for a node``
    lasting: str = ""  #: how long, in coarse steps: `` for more than 4 min``
    detail: str = ""

    @property
    def message(self) -> str:
        """All of it, in half a sentence."""
        return f"{self.what}{self.lasting}{': ' if self.detail else ''}{self.detail}"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """Its program runs."""

    since: datetime
    trouble: str = ""  #: what is wrong around it: its pod is being deleted, its node is silent
    leaving: Parting | None = None
    """Its pod is being taken away. The program was told to end; nobody else makes it do so, since
    the pod has as much patience as its recorder needs."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Exited:
    """Its program is over. What it wrote must still be fetched."""

    exit_code: int | None
    signal: int | None
    out_of_memory: bool
    at: datetime
    started_at: datetime | None = None
    cause: EndCause = EndCause.EXITED  #: not by itself if anything else
    message: str = ""  #: who took it away, where somebody did
    has_recorder: bool = True  #: whether there is still somebody to fetch from


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """It never began, or was taken away with all that it wrote. There is nothing to wait for."""

    cause: EndCause
    message: str
    at: datetime
    why: Wait | None = None  #: what it had waited for in vain


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Gone:
    """Its pod is no longer there, and was before; or its workload."""

    message: str
    cause: EndCause = EndCause.LOST


Standing = Waiting | Running | Exited | Failed | Gone


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What was known of a unit before."""

    created_at: datetime  #: when its workload was applied
    workload: str = ""  #: its name, once it was seen
    pod: str = ""  #: the name of its pod, once that was seen
    node: str = ""
    parting: Parting | None = None  #: how its pod was being taken away when it was last seen
