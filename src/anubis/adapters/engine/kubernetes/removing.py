"""Delete what a run has at the cluster, in order, and see that it is gone; find what is left."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from anubis.adapters.engine.kubernetes import kinds, mirroring, naming, recording, viewing
from anubis.adapters.engine.kubernetes.attending import Surroundings
from anubis.adapters.engine.kubernetes.cluster import Cluster, Deleted
from anubis.adapters.engine.kubernetes.following import Watch
from anubis.adapters.engine.kubernetes.kinds import Found, Kind
from anubis.adapters.engine.kubernetes.places import Named, Spec, now
from anubis.domain.errors import EngineUnavailable, NotPossible
from anubis.domain.run import RunId

PATIENCE_SECONDS: Final = 10.0
"""How long the cluster may take while somebody waits: nodes need two or three seconds. Whoever
asked comes back."""

RELEASE_SECONDS: Final = 5.0
"""For a recorder to hear that it may go. One on a node that is away does not."""

GRACE_SECONDS: Final = 1
"""For the programs of a pod that nobody needs. Not 0: then the API forgets the pod at once, whose
node goes on with it, and has as much patience as a recorder may wait to be read: a day."""

SILENT_NODE: Final = timedelta(minutes=1)
"""After which a pod is deleted without its node, which has not said that its programs ended."""

_ORDER: Final = (kinds.MPI_JOB, kinds.JOB, kinds.SERVICE, kinds.SECRET)
"""What makes pods goes first. None of these makes a pod anew while the old one is leaving."""


async def remove(
    around: Surroundings,
    installation: str,
    run_id: RunId,
    specs: Sequence[Spec],
    asked: set[Named],
) -> None:
    """Delete everything of a run: what is known to have been made, or all that bears its labels.

    ``asked``: what the cluster has deleted already, and is not asked for again; it is added to.
    Raises NotPossible if some of it is still there after a while.
    """
    selector = f"{naming.of_installation(installation)},{naming.RUN}={run_id}"
    known = {one for spec in specs for one in spec.objects}
    pods = around.pods.subscribe(run_id)
    try:
        # Before what makes them: with it, the cluster deletes them with all their patience, and a
        # node that has begun to wait is not to be hurried any more.
        await _delete_pods(around, run_id, selector)
        if known:
            held = await _delete_known(around.cluster, known, asked)
        else:
            held = await _delete_labelled(around.cluster, selector)
        await _see_them_gone(around.pods, run_id)
        if held:
            raise NotPossible(f"a finalizer keeps {', '.join(held)} of run {run_id}")
    finally:
        pods.close()


async def _delete_known(
    cluster: Cluster, known: Iterable[Named], asked: set[Named]
) -> Sequence[str]:
    """Delete what was made, in order; what somebody holds back."""
    held = []
    for one in sorted(set(known) - asked, key=lambda one: _rank(one.kind)):
        if await cluster.delete(one.kind, one.name) is Deleted.LEAVES:
            held.append(f"{one.kind.kind} {one.name}")
        else:
            asked.add(one)
    return held


async def _delete_labelled(cluster: Cluster, selector: str) -> Sequence[str]:
    """Delete what is there, in order; what somebody holds back."""
    held = []
    for kind in await _present(cluster):
        for one in (await cluster.list(kind, selector)).items:
            name = str(one["metadata"]["name"])
            if await cluster.delete(kind, name) is Deleted.LEAVES:
                held.append(f"{kind.kind} {name}")
    return held


async def _delete_pods(around: Surroundings, run_id: RunId, selector: str) -> None:
    """With little patience: whoever recorded has been read, or nobody wants to read it."""
    if around.pods.is_fresh:
        found = around.pods.state(run_id).objects
    else:
        found = (await around.cluster.list(kinds.POD, selector)).items
    await asyncio.gather(*(_release(around.cluster, one) for one in found))
    for one in found:
        if (grace := _grace(one["metadata"], now())) is not None:
            await around.cluster.delete(kinds.POD, str(one["metadata"]["name"]), grace=grace)


async def _release(cluster: Cluster, found: Found) -> None:
    """Tell a recorder that waits to be read that it may go. A node that began to wait for it does
    not stop to, also if its pod is deleted with less patience.
    """
    pod = viewing.pod_view(found)
    is_there = pod.container(viewing.RECORDER).phase is viewing.Phase.RUNNING and not pod.is_over
    if not is_there:
        return
    command = ("touch", recording.RELEASED)
    with contextlib.suppress(EngineUnavailable, TimeoutError):
        async with (
            asyncio.timeout(RELEASE_SECONDS),
            cluster.exec(pod.name, mirroring.RECORDER, command) as output,
        ):
            async for _ in output:
                pass


def _grace(metadata: Mapping[str, Any], moment: datetime) -> int | None:
    """With how much patience to delete a pod; None: that was asked already, and takes its time."""
    by = viewing.moment(metadata.get("deletionTimestamp"))
    patience = metadata.get("deletionGracePeriodSeconds")
    if by is None or not isinstance(patience, int) or patience > GRACE_SECONDS:
        return GRACE_SECONDS
    return 0 if patience > 0 and moment > by + SILENT_NODE else None


async def _see_them_gone(pods: Watch, run_id: RunId) -> None:
    until = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    with pods.subscribe(run_id) as news:
        while not pods.is_fresh or pods.state(run_id).objects:
            left = until - asyncio.get_running_loop().time()
            if left <= 0:
                raise NotPossible(f"pods of run {run_id} are still being deleted")
            await news.changed(min(left, 1.0))


async def runs(cluster: Cluster, installation: str) -> frozenset[RunId]:
    """Runs of which the cluster has something."""
    selector = naming.of_installation(installation)
    found = set()
    for kind in (*await _present(cluster), kinds.POD):
        for one in (await cluster.list(kind, selector)).items:
            found.add(RunId(str((one["metadata"].get("labels") or {}).get(naming.RUN, ""))))
    return frozenset(found - {RunId("")})


async def _present(cluster: Cluster) -> Sequence[Kind]:
    """The kinds that we make and that this cluster knows."""
    mpi = kinds.MPI_JOB
    has_mpi = await cluster.has_api(mpi.group_version, mpi.plural)
    return [kind for kind in _ORDER if kind is not mpi or has_mpi]


def _rank(kind: Kind) -> int:
    return _ORDER.index(kind)
