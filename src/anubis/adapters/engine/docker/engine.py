"""The Docker engine: units are containers, guarded by processes that outlive us.

The daemon owns the containers. All that was seen of one is in its unit's directory, written by its
guard, in the same form as for a program of the process engine; so every observer sees the same, and
a service that was killed finds everything again. This class creates, asks for guards, and removes.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from anubis.adapters.engine import probing
from anubis.adapters.engine.docker import composing, copying, guarding, images, leaving
from anubis.adapters.engine.docker.capabilities import DOCKER
from anubis.adapters.engine.docker.composing import Manners, Names
from anubis.adapters.engine.docker.daemon import Daemon, Refused
from anubis.adapters.engine.docker.fingerprinting import Fingerprinter
from anubis.adapters.engine.process import (
    directories,
    removing,
    specifying,
    watching,
)
from anubis.adapters.engine.process.guardian import files
from anubis.adapters.engine.process.holding import Holding
from anubis.adapters.engine.process.link import ZygoteLink
from anubis.domain.dataset import Report
from anubis.domain.document import Fingerprint
from anubis.domain.errors import EngineUnavailable, NotPossible
from anubis.domain.observation import Condition, EndCause, Observation
from anubis.domain.plan import SOLE, Plan, Unit
from anubis.domain.run import RunId

NO_ADDRESS_SECONDS = 0.2
"""How often we ask where a container is that has just been started."""


NO_INIT = "init binary not found"
"""What Podman says where the package with its init (catatonit) is not installed."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Described:
    """The daemon, for people."""

    words: str
    folder: str  #: where its images are, on its machine


DAEMONS_FAULT = 500  #: from this status of HTTP on, nothing is wrong with what was asked for


class DockerEngine:
    """Runs as containers. Enter it, or call ``close``: runs go on without it either way."""

    def __init__(
        self,
        directory: Path,
        address: str,
        *,
        pull: str,
        revive: tuple[str, ...] | None,
        private_networks: bool = False,
    ) -> None:
        self._directory = directory.resolve()
        self._home = composing.home_id(directory.parent)
        self._daemon = Daemon(address)
        self._pull = pull
        self._private_networks = private_networks  #: also for runs of a single unit
        self._holding = Holding(self._directory)
        self._link = ZygoteLink(self._directory, revive, self._holding.note_end)
        self._places = directories.Directories(self._directory)
        self._fingerprinter = Fingerprinter(self._daemon, self._holding.gpus)
        self._known_manners: Manners | None = None
        self._making = asyncio.Lock()  #: networks: the daemon would make two of one name
        self.capabilities = DOCKER

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
        await self._daemon.close()
        self._holding.close()

    async def prepare(self, plan: Plan, report: Report) -> None:
        """See the port. Pulls images as the policy says."""
        await images.bring(self._daemon, plan, self._pull, report)

    async def fingerprint(self, plan: Plan) -> Fingerprint:
        """See the port."""
        return await self._fingerprinter.take(plan)

    async def start(self, run_id: RunId, plan: Plan, unit: str = SOLE) -> None:
        """See the port. The name of a container can be given once; its guard starts it."""
        directory = self._places.unit(run_id, unit)
        if files.was_started(str(directory)):
            return
        try:
            guarding.make_place(directory)
            container = await self._create(run_id, plan, unit)
            if isinstance(container, str):
                guarding.refuse(directory, unit, container)
                return
            guarding.write_spec(directory, plan, unit, container)
            self._holding.hold(directory)
        except OSError as error:
            raise EngineUnavailable(f"{directory} cannot be used: {error.strerror}") from error
        try:
            await self._link.start(directory.name)
        except EngineUnavailable:
            (directory / files.CONTAINER).unlink(missing_ok=True)  # nobody was asked to start it
            raise

    async def _create(self, run_id: RunId, plan: Plan, name: str) -> dict[str, object] | str:
        """A container as its guard must know it; or why there can be none."""
        unit = composing.placed(plan, name)
        if obstacle := composing.obstacle(unit):
            return obstacle
        names = Names(home=self._home, run_id=run_id)
        if self._has_network(plan):
            async with self._making:
                await self._daemon.make_network(names.network, composing.network(names))
        try:
            container = await self._created(names, plan, unit)
        except Refused as error:
            if error.status >= DAEMONS_FAULT:
                raise
            return f"the container cannot be created: {error}"
        return {
            "container": container,
            "address": self._daemon.address,
            "version": (await self._daemon.version()).api,
            "has_init": (await self._manners()).has_init,
        }

    async def _created(self, names: Names, plan: Plan, unit: Unit) -> str:
        """The id of a unit's container, with all that it gets a copy of; made without an init where
        the daemon has none.
        """
        fifo = guarding.emit_fifo(self._places.unit(names.run_id, unit.name))
        manners = await self._manners()
        setting = composing.Setting(
            names=names, manners=manners, fifo=fifo, has_network=self._has_network(plan)
        )
        try:
            shape = composing.container(setting, unit)
            made = await self._daemon.create(names.container(unit.name), shape)
        except Refused as error:
            if not manners.has_init or NO_INIT not in str(error):
                raise
            self._known_manners = dataclasses.replace(manners, has_init=False)
            return await self._created(names, plan, unit)
        if mounts := copying.given(unit):
            await self._daemon.copy_in(made, await asyncio.to_thread(copying.packed, mounts))
        return made

    def _has_network(self, plan: Plan) -> bool:
        return self._private_networks or composing.needs_network(plan)

    async def _manners(self) -> Manners:
        if self._known_manners is None:
            if (await self._daemon.version()).is_podman:
                self._known_manners = composing.PODMANS
            else:
                has_init = bool((await self._daemon.facts()).get("InitBinary"))
                self._known_manners = dataclasses.replace(composing.DOCKERS, has_init=has_init)
        return self._known_manners

    async def started(self, run_id: RunId) -> frozenset[str]:
        """See the port."""
        places = self._places.of(run_id)
        return frozenset(files.owner(place.name)[1] for place in places if guarding.is_used(place))

    def observe(self, run_id: RunId, unit: str = SOLE) -> AsyncIterator[Observation]:
        """See the port."""
        directory = self._places.unit(run_id, unit)
        if not guarding.is_used(directory):
            return watching.never_started(unit)
        watch = guarding.ContainerWatch(directory, unit, lambda: self._call_guard(directory))
        return self._holding.observed(directory, unit, watch)

    async def _call_guard(self, directory: Path) -> None:
        """Have somebody guard a container again, whose guard was killed. If not now, then later."""
        with contextlib.suppress(OSError, EngineUnavailable):
            guarding.make_place(directory)
            await self._link.start(directory.name)

    async def probe(self, run_id: RunId, plan: Plan, unit: str) -> AsyncIterator[Condition]:
        """See the port. Asked from this machine, at the container's own address."""
        asked = plan.unit(unit)
        host = ""
        if asked.readiness is not None or asked.liveness is not None:
            host = await self._address(run_id, unit)
        conditions = probing.conditions(asked, lambda number: (host, number))
        async with contextlib.aclosing(conditions):
            async for condition in conditions:
                yield condition

    async def _address(self, run_id: RunId, unit: str) -> str:
        """Where a unit is; waits while its container is being started."""
        name = Names(home=self._home, run_id=run_id).container(unit)
        while True:
            with contextlib.suppress(EngineUnavailable):
                found = await self._daemon.container(name)
                if found is not None and found.address:
                    return found.address
            await asyncio.sleep(NO_ADDRESS_SECONDS)

    async def stop(
        self,
        run_id: RunId,
        *,
        grace: timedelta,
        cause: EndCause,
        units: Collection[str] | None = None,
    ) -> None:
        """See the port. The request is a file that the guard acts on, also a later one."""
        for directory in self._places.of(run_id):
            is_meant = units is None or files.owner(directory.name)[1] in units
            if is_meant and guarding.is_used(directory) and not files.has_ended(str(directory)):
                await self._ask_to_end(directory, grace, cause)

    async def _ask_to_end(self, directory: Path, grace: timedelta, cause: EndCause) -> None:
        try:
            specifying.write_stop(directory, grace, cause)
        except FileNotFoundError:  # removed at this moment
            return
        except OSError as error:
            raise EngineUnavailable(f"the request to stop cannot be written: {error}") from error
        if not watching.is_guarded(directory) and not self._link.serves(directory.name):
            await self._call_guard(directory)

    async def remove(self, run_id: RunId) -> None:
        """See the port. Raises NotPossible while a unit goes on."""
        places = self._places.of(run_id)
        pending = [place for place in places if not files.has_ended(str(place))]
        if any(watching.is_guarded(place) for place in pending):
            raise NotPossible(f"run {run_id} still goes on; stop it first")
        left = await leaving.find(self._daemon, self._home, run_id)
        if pending and any(one.is_running for one in left):
            raise NotPossible(f"run {run_id} still goes on; stop it first")
        await self._delete(run_id, left)

    async def wipe(self, run_id: RunId) -> None:
        """Delete all that there is of a run that nobody needs any more, also what still runs."""
        await self._delete(run_id, await leaving.find(self._daemon, self._home, run_id))

    async def _delete(self, run_id: RunId, left: Sequence[leaving.Left]) -> None:
        await leaving.delete(self._daemon, left)
        for place in self._places.of(run_id):
            self._holding.let_go(place.name)
            await asyncio.to_thread(removing.delete, place)

    async def leftovers(self) -> Sequence[RunId]:
        """See the port. What the daemon has is added, if it answers."""
        known = set(self._places.runs())
        if self._directory.is_dir():  # else this home never had a container
            with contextlib.suppress(EngineUnavailable):
                known |= await self.labelled()
        return sorted(known)

    async def labelled(self) -> frozenset[RunId]:
        """Runs of which the daemon has something. Raises EngineUnavailable."""
        return frozenset(one.run_id for one in await leaving.find(self._daemon, self._home))

    async def describe(self) -> Described:
        """Who answers. Raises EngineUnavailable."""
        version, facts = await self._daemon.version(), await self._daemon.facts()
        name = "Podman" if version.is_podman else "Docker"
        groups = f"{facts.get('CgroupDriver')} on cgroup v{facts.get('CgroupVersion') or 1}"
        words = f"{name} {version.version} at {self._daemon.address}, {facts.get('Driver')}"
        return Described(words=f"{words}, {groups}", folder=str(facts.get("DockerRootDir") or ""))
