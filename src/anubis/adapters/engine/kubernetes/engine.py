"""The Kubernetes engine: units are pods of a cluster, each with a recorder that outlives us.

The cluster owns the pods. All that was seen of one is kept in its unit's place on this machine, by
its attendant: a service that was killed finds everything again, in the pod or here. This class
asks the cluster for workloads, has them attended, and removes them.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from anubis.adapters.engine.kubernetes import composing, kinds, naming, probes, removing, rights
from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.attending import Attendant, Surroundings
from anubis.adapters.engine.kubernetes.capabilities import KUBERNETES
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.composing import Composer, Terms
from anubis.adapters.engine.kubernetes.fingerprinting import Fingerprinter
from anubis.adapters.engine.kubernetes.following import Watch
from anubis.adapters.engine.kubernetes.gathering import Gatherer, KeyMaker
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.adapters.engine.kubernetes.manifests.workloads import Workloads
from anubis.adapters.engine.kubernetes.places import Named, Place, Spec, StopRequest, now
from anubis.adapters.engine.kubernetes.refusals import NotPermitted, Refused
from anubis.adapters.engine.kubernetes.telling import Teller
from anubis.adapters.engine.process import directories, watching
from anubis.adapters.engine.process.guardian import files
from anubis.domain.dataset import Report
from anubis.domain.document import Fingerprint
from anubis.domain.errors import EngineUnavailable, NotPossible, UserError
from anubis.domain.observation import Condition, EndCause, Observation, UnitEnded
from anubis.domain.plan import SOLE, Plan
from anubis.domain.run import RunId
from anubis.ports.script_store import ScriptStore

INSTALLATION: Final = "installation"
LOOK_AGAIN_SECONDS: Final = 60.0
"""Between two tries to see what an earlier life left at a cluster that does not answer."""

NOBODYS: Final = frozenset({404, 409})
"""The namespace is not there, or somebody wrote at the same moment: no benchmark's fault."""

LOOK_SECONDS: Final = 30.0  #: after which an observer looks whom nobody woke
CLUSTERS_FAULT: Final = 500  #: from this status of HTTP on, nothing is wrong with what we asked for


class KubernetesEngine:
    """Runs as pods. Enter it, or call ``close``: runs go on without it either way."""

    def __init__(
        self,
        directory: Path,
        access: Access,
        terms: Callable[[], Terms],
        *,
        scripts: ScriptStore,
        make_keys: KeyMaker,
    ) -> None:
        self._directory = directory
        self._places = directories.Directories(directory)
        self._cluster = Cluster(access)
        self._composer = Composer(self._cluster, terms, Gatherer(scripts, make_keys))
        self._fingerprinter = Fingerprinter(self._cluster)
        self._attendants: dict[tuple[RunId, str], tuple[Attendant, asyncio.Task[None]]] = {}
        self._applied: dict[RunId, set[tuple[str, str]]] = {}  #: kinds and names, since our start
        self._starting: dict[RunId, asyncio.Lock] = {}
        self._removed: dict[RunId, set[Named]] = {}  #: asked of the cluster, which is not done yet
        self._has_rights = False  #: as far as we have asked
        self._looking: asyncio.Task[None] | None = None  #: for what an earlier life left
        self._left: frozenset[RunId] = frozenset()
        self.capabilities = KUBERNETES

    @property
    def cluster(self) -> Cluster:
        """Whom it asks."""
        return self._cluster

    @functools.cached_property
    def installation(self) -> str:
        """The label by which its objects are found; made when it is first needed."""
        return _installation(self._directory)

    @functools.cached_property
    def _around(self) -> Surroundings:
        selector = naming.of_installation(self.installation)
        return Surroundings(
            cluster=self._cluster,
            pods=Watch(self._cluster, kinds.POD, selector),
            jobs=Watch(self._cluster, kinds.JOB, selector),
            mpi_jobs=Watch(self._cluster, kinds.MPI_JOB, selector),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave; runs in flight go on, and are found again by the next engine."""
        tasks = [task for _, task in self._attendants.values()]
        tasks += [self._looking] if self._looking else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._attendants.clear()
        if "_around" in self.__dict__:  # else it was never used
            for watch in (self._around.pods, self._around.jobs, self._around.mpi_jobs):
                await watch.close()
        await self._cluster.close()

    async def prepare(self, plan: Plan, report: Report) -> None:
        """Nodes pull images themselves, when they are chosen."""

    async def fingerprint(self, plan: Plan) -> Fingerprint:
        """See the port."""
        return await self._fingerprinter.take(plan)

    async def start(self, run_id: RunId, plan: Plan, unit: str = SOLE) -> None:
        """See the port. Names at the cluster are given once; what was deleted is not made again."""
        place = self._place(run_id, unit)
        async with self._starting.setdefault(run_id, asyncio.Lock()):
            if _was_started(place):
                return
            try:
                await self._start(run_id, plan, unit, place)
            except OSError as error:
                text = f"{place.directory} cannot be used: {error.strerror}"
                raise EngineUnavailable(text) from error

    async def _start(self, run_id: RunId, plan: Plan, unit: str, place: Place) -> None:
        await self._see_rights()
        try:
            mine = composing.Whose(installation=self.installation, run_id=run_id)
            composed = await self._composer.compose(mine, plan, self._places.run(run_id))
        except UserError as error:  # code or data is not here, or cannot travel
            self._refuse(place, plan, unit, str(error), EndCause.NOT_BROUGHT)
            return
        if isinstance(composed, str):
            self._refuse(place, plan, unit, composed)
            return
        place.write_spec(_spec(composed, plan, unit))
        try:
            await self._apply(run_id, composed, unit)
        except NotPermitted:
            raise
        except Refused as error:
            if error.status >= CLUSTERS_FAULT or error.is_quota or error.status in NOBODYS:
                raise error.advised() from error
            self._refuse(place, plan, unit, f"the cluster refuses it: {error}")
            return
        place.mark_created()
        self._attend(run_id, unit)

    async def _see_rights(self) -> None:
        """Once: a program whose output we may not fetch must not begin."""
        if not self._has_rights:
            if missing := await rights.missing(self._cluster):
                raise NotPermitted("", "", rights.words(missing, self._cluster.words))
            self._has_rights = True

    async def _apply(self, run_id: RunId, composed: Workloads, unit: str) -> None:
        """Make what a unit needs and what is not there yet; the first workload owns the rest."""
        applied = self._applied.setdefault(run_id, set()) | self._known_to_be_applied(run_id)
        workload = composed.of(unit)
        wanted = [one for one in composed.for_unit(unit) if _identity(one) not in applied]
        owner = None
        for manifest in wanted:
            made = await self._cluster.apply(manifest)
            self._applied[run_id].add(_identity(manifest))
            if manifest is workload.manifest:
                owner = kinds.Owner(
                    kind=kinds.kind_of(manifest),
                    name=workload.name,
                    uid=str(made.object["metadata"]["uid"]),
                )
        if owner is not None:
            for manifest in wanted[:-1]:
                kind, name = kinds.kind_of(manifest), _identity(manifest)[1]
                await self._cluster.adopt(kind, name, owner)

    def _known_to_be_applied(self, run_id: RunId) -> set[tuple[str, str]]:
        """What other units of the run were given, perhaps by an earlier life: it is not made again,
        also if somebody has deleted it since.
        """
        taken = [place for _, place in self._units(run_id) if place.created_at is not None]
        specs = [spec for place in taken if (spec := place.spec())]
        return {(one.kind.kind, one.name) for spec in specs for one in spec.objects}

    def _refuse(
        self,
        place: Place,
        plan: Plan,
        unit: str,
        message: str,
        cause: EndCause = EndCause.NOT_STARTED,
    ) -> None:
        """End a unit that cannot be before it begins."""
        if not place.is_used:
            nothing = Named(kind=kinds.JOB, name="")
            place.write_spec(_bare_spec(plan, unit, nothing, ()))
        place.write_ended(UnitEnded(unit=unit, at=now(), cause=cause, message=message))

    async def started(self, run_id: RunId) -> frozenset[str]:
        """See the port."""
        return frozenset(unit for unit, place in self._units(run_id) if _was_started(place))

    async def observe(self, run_id: RunId, unit: str = SOLE) -> AsyncIterator[Observation]:
        """See the port."""
        place = self._place(run_id, unit)
        if not _was_started(place):
            async for observation in watching.never_started(unit):
                yield observation
            return
        attendant = self._attend(run_id, unit)
        teller = Teller(place, unit)
        try:
            while attendant is not None:
                rung = attendant.bell.next()
                if place.ended() is not None or not place.directory.is_dir():
                    break
                self._raise_defect(run_id, unit)
                for seen in teller.turn(attendant.mirror.size):
                    yield seen
                await _wait(rung)
            ended = place.ended() or watching.lost(unit, "the run was removed")
            for seen in teller.rest(_size(place.journal), ended):
                yield seen
        finally:
            teller.close()

    async def probe(self, run_id: RunId, plan: Plan, unit: str) -> AsyncIterator[Condition]:
        """See the port. Its recorder asks, and writes the answers into the journal."""
        place, attendant = self._place(run_id, unit), self._attend(run_id, unit)
        if attendant is None:  # it has ended: nobody asks any more
            await asyncio.Event().wait()
            return
        conditions = probes.conditions(place, plan.unit(unit), attendant)
        async with contextlib.aclosing(conditions):
            async for condition in conditions:
                yield condition

    async def stop(
        self,
        run_id: RunId,
        *,
        grace: timedelta,
        cause: EndCause,
        units: Collection[str] | None = None,
    ) -> None:
        """See the port. The request is a file that the attendant acts on, also a later one."""
        for unit, place in self._units(run_id):
            is_meant = units is None or unit in units
            if not is_meant or not _was_started(place) or place.ended() is not None:
                continue
            request = StopRequest(cause=cause, grace=grace, asked_at=now())
            try:
                place.request_stop(request)
            except OSError as error:
                text = f"the request to stop cannot be written: {error}"
                raise EngineUnavailable(text) from error
            if (attendant := self._attend(run_id, unit)) is not None:
                attendant.wake()

    async def remove(self, run_id: RunId) -> None:
        """See the port. Raises NotPossible while a unit goes on."""
        units = self._units(run_id)
        for unit, place in units:
            if place.created_at is not None and place.ended() is None:
                self._attend(run_id, unit)  # else nobody would bring it to its end
                raise NotPossible(f"run {run_id} still goes on; stop it first")
        if units or self._may_have_left(run_id):
            await self.wipe(run_id)

    def _may_have_left(self, run_id: RunId) -> bool:
        """Whether there may be anything of a run. Whoever sweeps comes to many that are gone since
        it was told of them.
        """
        has_looked = self._looking is not None and self._looking.done()
        is_known = run_id in self._left or run_id in self._with_pods()
        return not has_looked or is_known or bool(self._places.of(run_id))

    async def wipe(self, run_id: RunId) -> None:
        """Delete all that there is of a run that nobody needs any more, also what still runs.

        Raises NotPossible if the cluster has not done it yet, though it was asked.
        """
        units = self._units(run_id)
        for unit, _ in units:
            await self._dismiss(run_id, unit)
        specs = [spec for _, place in units if (spec := place.spec())]
        if not units or any(spec.objects for spec in specs):  # else it never got to the cluster
            asked = self._removed.setdefault(run_id, set())
            await removing.remove(self._around, self.installation, run_id, specs, asked)
        self._removed.pop(run_id, None)
        self._left -= {run_id}
        self._applied.pop(run_id, None)
        self._starting.pop(run_id, None)
        self._composer.forget(run_id)
        for directory in self._places.of(run_id):
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)

    async def leftovers(self) -> Sequence[RunId]:
        """See the port. What the cluster has of an earlier life is asked for once; of a pod that
        comes after all of its run was removed we hear.
        """
        known = set(self._places.runs())
        if self._directory.is_dir():  # else this home never had a pod
            known |= self._found_at_the_cluster() | self._with_pods()
        return sorted(known)

    def _with_pods(self) -> frozenset[RunId]:
        """Runs whose pods we see. A controller that has not heard yet of the end of a workload may
        make a pod for it. The cluster deletes that one, with all the patience of its recorder.
        """
        if "_around" not in self.__dict__:  # it was never used
            return frozenset()
        return frozenset(map(RunId, self._around.pods.runs()))

    def _found_at_the_cluster(self) -> frozenset[RunId]:
        """What an earlier life left there. Nobody waits for the answer: the cluster may be away,
        and whoever asks has leases to keep.
        """
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(), name="look for leftovers")
        return self._left

    async def _look(self) -> None:
        while True:
            with contextlib.suppress(EngineUnavailable):
                self._left = await self.labelled()
                return
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    async def labelled(self) -> frozenset[RunId]:
        """Runs of which the cluster has something. Raises EngineUnavailable."""
        return await removing.runs(self._cluster, self.installation)

    def _attend(self, run_id: RunId, unit: str) -> Attendant | None:
        """Whoever looks after a unit; None if it has ended and nobody needs to."""
        if (known := self._attendants.get((run_id, unit))) is not None:
            return known[0]
        place = self._place(run_id, unit)
        spec = place.spec()
        if spec is None or place.ended() is not None:
            return None
        attendant = Attendant(self._around, place, run_id, spec)
        task = asyncio.create_task(attendant.attend(), name=f"attend {run_id} {unit}")
        self._attendants[run_id, unit] = (attendant, task)
        task.add_done_callback(lambda done: self._let_go(run_id, unit, done))
        return attendant

    def _let_go(self, run_id: RunId, unit: str, task: asyncio.Task[None]) -> None:
        """Forget one who has done its work; one that died stays, and says what of."""
        known = self._attendants.get((run_id, unit))
        is_ours = known is not None and known[1] is task
        if is_ours and (task.cancelled() or task.exception() is None):
            del self._attendants[run_id, unit]

    def _raise_defect(self, run_id: RunId, unit: str) -> None:
        known = self._attendants.get((run_id, unit))
        if known is not None and known[1].done():
            self._attendants.pop((run_id, unit))
            known[1].result()

    async def _dismiss(self, run_id: RunId, unit: str) -> None:
        known = self._attendants.pop((run_id, unit), None)
        if known is not None:
            known[1].cancel()
            await asyncio.wait([known[1]])

    def _place(self, run_id: RunId, unit: str) -> Place:
        return Place(self._places.unit(run_id, unit))

    def _units(self, run_id: RunId) -> list[tuple[str, Place]]:
        """The units of a run that have a place."""
        found = [(files.owner(one.name)[1], Place(one)) for one in self._places.of(run_id)]
        return [(unit, place) for unit, place in found if place.is_used]


def _was_started(place: Place) -> bool:
    return place.created_at is not None or place.ended() is not None


def _installation(directory: Path) -> str:
    """The name of this installation, the same for ever; made when it is first needed."""
    path = directory / INSTALLATION
    with contextlib.suppress(FileNotFoundError):
        if found := path.read_text().strip():
            return found
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    own = secrets.token_hex(8)
    files.write_durably(str(directory), f"{INSTALLATION}.{own}", own.encode(), sync=True)
    fresh = directory / f"{INSTALLATION}.{own}"
    with contextlib.suppress(FileExistsError):  # another process was first: its name it is
        path.hardlink_to(fresh)
    fresh.unlink()
    return path.read_text().strip()


def _spec(composed: Workloads, plan: Plan, unit: str) -> Spec:
    objects = tuple(
        Named(kind=kinds.kind_of(one), name=_identity(one)[1]) for one in composed.for_unit(unit)
    )
    return _bare_spec(plan, unit, objects[-1], objects)


def _bare_spec(plan: Plan, unit: str, workload: Named, objects: tuple[Named, ...]) -> Spec:
    return Spec(
        unit=unit,
        workload=workload,
        objects=objects,
        limits=plan.limits,
        asked_at=now(),
    )


def _identity(manifest: Manifest) -> tuple[str, str]:
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    return str(manifest["kind"]), str(metadata["name"])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


async def _wait(rung: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LOOK_SECONDS):
            await rung.wait()
