"""Run the units of a plan somewhere, and report all that is seen of them."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Protocol

from anubis.domain.document import Fingerprint
from anubis.domain.observation import EndCause, Observation
from anubis.domain.plan import Plan
from anubis.domain.run import RunId


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """What an engine can do, as data. No stage asks for an engine by name."""

    name: str
    strategies: frozenset[str]  #: spellings of ``hardware.strategy``
    needs_image: bool
    honours_affinity: bool


class Engine(Protocol):
    """A run, once started, lives on whatever happens to the process that started it."""

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can do."""
        ...

    async def fingerprint(self, plan: Plan) -> Fingerprint:
        """Describe the environment the plan would run in now. Cheap when asked again."""
        ...

    async def start(self, run_id: RunId, plan: Plan) -> None:
        """Start the units. Starting a run twice never runs it twice: the second call does nothing,
        whether the run still goes on, has ended, or was lost.

        Returns when the start is requested; whether the program could be executed is observed.
        Raises EngineUnavailable if nothing was started; retrying is safe.
        """
        ...

    def observe(self, run_id: RunId) -> AsyncIterator[Observation]:
        """All that was and will be seen of a started run, from its very first byte.

        Per unit in order, UnitEnded last; the iteration ends after the last unit's UnitEnded.
        Several observers, or one after another, see the same. An observer that stops iterating
        changes nothing for the run. A run that was never started ends at once with cause LOST.
        Output is complete: what the program wrote and flushed before it ended is seen.
        """
        ...

    async def stop(self, run_id: RunId, *, grace: timedelta, cause: EndCause) -> None:
        """Ask all units to end: SIGTERM now, SIGKILL to the whole tree after ``grace``.

        Returns at once; the end is observed. Stopping a run that has ended does nothing.
        """
        ...

    async def remove(self, run_id: RunId) -> None:
        """Forget an ended run and delete what the engine kept of it. Safe to repeat."""
        ...

    async def leftovers(self) -> Sequence[RunId]:
        """Runs of which the engine still keeps something, ended or not."""
        ...
