"""Forget what nobody needs any more: at the start, and then once a day.

Without it a service that runs for years would fill its disk with records and archives. Nothing that
belongs to a run goes here: runs stay until somebody purges them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from anubis.domain.errors import AnubisError
from anubis.ports.access_store import AccessStore
from anubis.ports.clock import Clock

EVERY = timedelta(days=1)

AGAIN = timedelta(hours=1)
"""When something went wrong: a store that is busy, a disk that is full."""

UNFINISHED = timedelta(hours=1)
"""For how long an upload may be silent: no connection lives that long without a byte."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Keeping:
    """How long things are kept."""

    audit: timedelta  #: the record of who did what
    scripts: timedelta  #: an archive that nobody uses


class Archives(Protocol):
    """Archives of code, of which those go that nobody needs: see ``ScriptStore``."""

    async def forget_unused(self, before: datetime) -> int:
        """Remove the archives that were last used before a moment."""
        ...

    async def forget_unfinished(self, before: datetime) -> int:
        """Remove what is left of uploads that never ended."""
        ...


class Housekeeper:
    """``run`` is its task."""

    def __init__(
        self, access: AccessStore, scripts: Archives, clock: Clock, keeping: Keeping
    ) -> None:
        self._access = access
        self._scripts = scripts
        self._clock = clock
        self._keeping = keeping
        self._log = structlog.get_logger("anubis.runtime")

    async def run(self) -> None:
        """Keep house for as long as this runs."""
        while True:
            all_went_well = await self.turn()
            await self._clock.sleep((EVERY if all_went_well else AGAIN).total_seconds())

    async def turn(self) -> bool:
        """Forget all that is old enough; gives whether all of it could be done."""
        results = [await self._try(*chore) for chore in self._chores(self._clock.now())]
        return all(results)

    def _chores(self, now: datetime) -> Iterator[_Chore]:
        yield "audit", self._access.forget_before, now - self._keeping.audit
        yield "scripts", self._scripts.forget_unused, now - self._keeping.scripts
        yield "uploads", self._scripts.forget_unfinished, now - UNFINISHED

    async def _try(self, what: str, forget: _Forget, before: datetime) -> bool:
        try:
            count = await forget(before)
        except AnubisError as error:  # the service goes on without it
            self._log.warning("housekeeping_failed", what=what, error=str(error))
            return False
        if count:
            self._log.info("forgotten", what=what, count=count, before=before.isoformat())
        return True


_Forget = Callable[[datetime], Awaitable[int]]
"""Removes what is older than a moment, and gives how many that were."""

_Chore = tuple[str, _Forget, datetime]
