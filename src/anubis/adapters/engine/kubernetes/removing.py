"""Delete what a run has at the cluster, in order, and see that it is gone; find what is left."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from anubis.adapters.engine.kubernetes import kinds, naming
from anubis.adapters.engine.kubernetes.attending import Surroundings
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.following import Watch
from anubis.adapters.engine.kubernetes.kinds import Kind
from anubis.adapters.engine.kubernetes.places import Named, Spec
from anubis.domain.errors import NotPossible
from anubis.domain.run import RunId

PATIENCE_SECONDS: Final = 2.0
"""How long the cluster may take while somebody waits. Whoever asked comes back."""

_ORDER: Final = (kinds.MPI_JOB, kinds.JOB, kinds.SERVICE, kinds.SECRET)
"""What makes pods goes first, else it would make them anew."""


async def remove(
    around: Surroundings,
    installation: str,
    run_id: RunId,
    specs: Sequence[Spec],
    asked: set[Named],
) -> None:
    """Delete everything of a run: what is known to have been made, or all that bears its labels.

    ``asked``: what the cluster was asked to delete before, and is not asked again; it is added to.
    Raises NotPossible if some of it is still there after a while.
    """
    selector = f"{naming.of_installation(installation)},{naming.RUN}={run_id}"
    known = {one for spec in specs for one in spec.objects}
    pods = around.pods.subscribe(run_id)
    try:
        if known:
            for one in sorted(known - asked, key=lambda one: _rank(one.kind)):
                await around.cluster.delete(one.kind, one.name)
                asked.add(one)
        else:
            await _delete_labelled(around.cluster, selector)
        await _delete_pods(around, run_id, selector)
        await _see_them_gone(around.pods, run_id)
    finally:
        pods.close()


async def _delete_labelled(cluster: Cluster, selector: str) -> None:
    for kind in await _present(cluster):
        for one in (await cluster.list(kind, selector)).items:
            await cluster.delete(kind, str(one["metadata"]["name"]))


async def _delete_pods(around: Surroundings, run_id: RunId, selector: str) -> None:
    """Without patience: whoever recorded has been read, or nobody wants to read it."""
    if around.pods.is_fresh:
        found = around.pods.state(run_id).objects
    else:
        found = (await around.cluster.list(kinds.POD, selector)).items
    for one in found:
        if not _is_going(one["metadata"]):
            await around.cluster.delete(kinds.POD, str(one["metadata"]["name"]), grace=0)


def _is_going(metadata: Mapping[str, Any]) -> bool:
    """Whether a pod was deleted without patience, and only controllers still hold it."""
    patience = metadata.get("deletionGracePeriodSeconds")
    return metadata.get("deletionTimestamp") is not None and patience == 0


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
