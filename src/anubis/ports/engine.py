"""Run the units of a plan somewhere, and report all that is seen of them.

An engine runs single units. Which of them starts when, and what the end of one means for the
others, is decided elsewhere, the same way for all engines.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import timedelta
from typing import Protocol

from anubis.domain.dataset import Report
from anubis.domain.document import Fingerprint
from anubis.domain.observation import Condition, EndCause, Observation
from anubis.domain.plan import SOLE, Plan
from anubis.domain.run import RunId


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """What an engine can do, as data. No stage asks for an engine by name."""

    name: str
    strategies: frozenset[str]  #: spellings of ``hardware.strategy``
    needs_image: bool
    honours_affinity: bool
    honours_niceness: bool = True
    honours_ulimits: bool = True  #: or may pass them over, as they mean nothing without containers
    takes_any_variable: bool = True
    """Whether variables may have any name that a system takes; if not, one of printable ASCII."""
    isolates: bool = False
    """Whether each unit has files, a host name and ports of its own. If not, all of them share
    those of the machine."""
    brings: bool = False
    """Whether it brings code, data and files itself to where its units run. If not, they are
    brought to this machine before a unit is started, and the blanks for them filled in."""
    has_machines: bool = False
    """Whether it chooses among many machines: units have a placement, and room is its own
    affair."""


class Engine(Protocol):
    """A unit, once started, lives on whatever happens to the process that started it."""

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can do."""
        ...

    async def prepare(self, plan: Plan, report: Report) -> None:
        """Bring what the units need from elsewhere: their images. Safe to repeat.

        Cancelling the call stops the transfer. Raises ImageUnavailable if an image cannot be had,
        EngineUnavailable if the engine does not answer.
        """
        ...

    async def fingerprint(self, plan: Plan) -> Fingerprint:
        """Describe the environment the plan would run in now. Cheap when asked again."""
        ...

    async def start(self, run_id: RunId, plan: Plan, unit: str = SOLE) -> None:
        """Start one unit. Starting it twice never runs it twice: the second call does nothing,
        whether the unit still runs, has ended, or was lost.

        All blanks but hosts and ports are filled in; those are the engine's to fill. Returns when
        the start is requested; whether the program could be executed is observed.
        Raises EngineUnavailable if nothing was started; retrying is safe.
        """
        ...

    async def started(self, run_id: RunId) -> frozenset[str]:
        """The units of a run that were started, whatever became of them. None after ``remove``."""
        ...

    def observe(self, run_id: RunId, unit: str = SOLE) -> AsyncIterator[Observation]:
        """All that was and will be seen of a started unit, from its very first byte.

        In order, UnitEnded last. Several observers, or one after another, see the same. An observer
        that stops iterating changes nothing for the run. A unit that was never started ends at
        once with cause LOST. Output is complete: what the program wrote and flushed before it ended
        is seen.
        """
        ...

    def probe(self, run_id: RunId, plan: Plan, unit: str) -> AsyncIterator[Condition]:
        """How a started unit answers its probes, from now on, whenever that changes.

        First UnitUnready or UnitReady; a unit without a readiness probe is ready at once. Ends
        after UnitSilent. Does not end by itself when the unit does: whoever asks stops asking.
        """
        ...

    async def stop(
        self,
        run_id: RunId,
        *,
        grace: timedelta,
        cause: EndCause,
        units: Collection[str] | None = None,
    ) -> None:
        """Ask units to end, all that were started unless some are named: SIGTERM now, SIGKILL to
        the whole tree after ``grace``.

        Returns at once; the end is observed. Stopping what has ended does nothing. Of several
        requests, the first decides the cause and the shortest the patience.
        """
        ...

    async def remove(self, run_id: RunId) -> None:
        """Forget an ended run and delete what the engine kept of it. Safe to repeat.

        Raises NotPossible while a unit of it still runs.
        """
        ...

    async def leftovers(self) -> Sequence[RunId]:
        """Runs of which the engine still keeps something, ended or not."""
        ...
