"""The process engine: units are processes of this machine, guarded by shims that outlive us.

All that is known about a unit is in its directory. This class writes the specification, asks the
zygote for a shim, and reads along; whatever it holds in memory only makes that faster. Its keys are
the names of directories, which are those of runs where a run has but one unit.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from anubis.adapters.engine import probing
from anubis.adapters.engine.process import (
    addressing,
    directories,
    removing,
    specifying,
    watching,
)
from anubis.adapters.engine.process.capabilities import PROCESS
from anubis.adapters.engine.process.fingerprinting import Fingerprinter
from anubis.adapters.engine.process.guardian import files, recovery
from anubis.adapters.engine.process.holding import Holding
from anubis.adapters.engine.process.link import ZygoteLink
from anubis.domain import blanks
from anubis.domain.dataset import Report
from anubis.domain.document import Fingerprint
from anubis.domain.errors import EngineUnavailable, NotPossible
from anubis.domain.observation import (
    Condition,
    EndCause,
    Observation,
)
from anubis.domain.plan import SOLE, Plan
from anubis.domain.run import RunId

REMOVE_SECONDS = 15.0
PAUSE_SECONDS = 0.02


class ProcessEngine:
    """Runs as processes. Enter it, or call ``close``: runs go on without it either way."""

    def __init__(self, directory: Path, *, revive: tuple[str, ...] | None) -> None:
        # By its real name: a home reached through a link is the same home, with the same runs.
        self._directory = directory.resolve()
        self._holding = Holding(self._directory)
        self._link = ZygoteLink(self._directory, revive, self._holding.note_end)
        self._places = directories.Directories(self._directory)
        self._ports = addressing.PortBook(self._places)
        self._fingerprinter = Fingerprinter(self._directory.parent / "cache", self._holding.gpus)
        self.capabilities = PROCESS

    async def __aenter__(self) -> Self:
        removing.forget_strays(self._directory)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # After a defect of ours we leave as if we had been killed: the zygote starts another.
        await self.close(says_goodbye=error is None)

    async def close(self, *, says_goodbye: bool = True) -> None:
        """Leave; runs in flight go on, and are found again by the next engine."""
        await self._link.close(says_goodbye=says_goodbye)
        self._ports.close()
        self._holding.close()

    def rouse(self) -> None:
        """Start the zygote before the first run needs it, for it starts us again if we are killed.

        Does nothing where that is not possible: the next run will say why.
        """
        with contextlib.suppress(OSError):
            self._link.prepare()

    async def prepare(self, plan: Plan, report: Report) -> None:
        """See the port. Programs of this machine are here already."""

    async def start(self, run_id: RunId, plan: Plan, unit: str = SOLE) -> None:
        """See the port. A unit is started once because only one journal can be created."""
        directory = self._places.unit(run_id, unit)
        if files.was_started(str(directory)):
            return
        try:
            meanings = await self._meanings(run_id, plan)
            specifying.write_spec(directory, run_id, plan, unit, meanings)
            self._holding.hold(directory)
        except OSError as error:
            raise EngineUnavailable(f"{directory} cannot be used: {error.strerror}") from error
        await self._link.start(directory.name)

    async def _meanings(self, run_id: RunId, plan: Plan) -> dict[str, str]:
        """What the blanks are that a plan leaves to its engine: all units are on this machine."""
        meanings = {blanks.name(blanks.host(unit.name)): addressing.HOST for unit in plan.units}
        if any(unit.ports for unit in plan.units):
            ports = await asyncio.to_thread(self._ports.allot, run_id, plan)
            meanings.update({name: str(number) for name, number in ports.items()})
        return meanings

    def observe(self, run_id: RunId, unit: str = SOLE) -> AsyncIterator[Observation]:
        """See the port."""
        directory = self._places.unit(run_id, unit)
        if not directories.is_used(directory):
            return watching.never_started(unit)
        watch = watching.ProcessWatch(directory, unit, lambda: self._link.serves(directory.name))
        return self._holding.observed(directory, unit, watch)

    async def started(self, run_id: RunId) -> frozenset[str]:
        """See the port. One whose shim was never asked for was not started, though specified."""
        places = self._places.of(run_id)
        return frozenset(
            files.owner(place.name)[1]
            for place in places
            if files.was_started(str(place)) or self._link.serves(place.name)
        )

    def probe(self, run_id: RunId, plan: Plan, unit: str) -> AsyncIterator[Condition]:
        """See the port."""
        ports = self._ports.known(run_id)

        def address(number: int) -> tuple[str, int]:
            blank = blanks.name(blanks.port(unit, number))
            return addressing.HOST, ports.get(blank, number)

        return probing.conditions(plan.unit(unit), address)

    async def stop(
        self,
        run_id: RunId,
        *,
        grace: timedelta,
        cause: EndCause,
        units: Collection[str] | None = None,
    ) -> None:
        """See the port. The request is a file, so that a shim not yet awake will find it."""
        for directory in self._places.of(run_id):
            is_meant = units is None or files.owner(directory.name)[1] in units
            if is_meant and directories.is_used(directory):
                self._ask_to_end(directory, grace, cause)

    @staticmethod
    def _ask_to_end(directory: Path, grace: timedelta, cause: EndCause) -> None:
        if files.has_ended(str(directory)):
            return
        try:
            specifying.write_stop(directory, grace, cause)
        except FileNotFoundError:  # removed at this moment
            return
        except OSError as error:
            raise EngineUnavailable(f"the request to stop cannot be written: {error}") from error

    async def remove(self, run_id: RunId) -> None:
        """See the port. Raises NotPossible while a unit goes on."""
        places = self._places.of(run_id)
        pending = [
            place
            for place in places
            if not files.has_ended(str(place)) and directories.is_used(place)
        ]
        if any(watching.is_guarded(place) for place in pending):
            raise NotPossible(f"run {run_id} still goes on; stop it first")
        for place in pending:
            await asyncio.to_thread(_recover, str(place))
        self._ports.release(run_id)
        for place in places:
            self._holding.let_go(place.name)
            await asyncio.to_thread(removing.delete, place)

    async def leftovers(self) -> Sequence[RunId]:
        """See the port."""
        return self._places.runs()

    async def fingerprint(self, plan: Plan) -> Fingerprint:
        """See the port."""
        return await self._fingerprinter.take(plan)


def _recover(directory: str) -> None:
    """Leave no process of a run whose shim died unseen, even if another is at it already."""
    give_up = time.monotonic() + REMOVE_SECONDS
    with contextlib.suppress(OSError, ValueError):
        while not recovery.recover(directory, "removed") and time.monotonic() < give_up:
            time.sleep(PAUSE_SECONDS)
