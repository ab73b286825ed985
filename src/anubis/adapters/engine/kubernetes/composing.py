"""From a plan to the objects of a run at this cluster; or why there can be none."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from anubis.adapters.engine.kubernetes import kinds
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.gathering import Gatherer
from anubis.adapters.engine.kubernetes.manifests import obstacles, workloads
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.adapters.engine.kubernetes.manifests.site import Site
from anubis.adapters.engine.kubernetes.manifests.workloads import Workloads
from anubis.domain.plan import Plan
from anubis.domain.run import RunId

_REMEMBERED_UNITS = 1
"""Runs of more units are composed once, and remembered: each of them is started by itself."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """What whoever runs Anubis says about pods."""

    image: str  #: our own
    pod_logs: str
    datasets: str
    fetch_secret: str
    drain: timedelta
    domain: str
    pull_policy: str
    overlay: Manifest = dataclasses.field(default_factory=dict)

    def site(self, installation: str, namespace: str, *, has_mpi_operator: bool) -> Site:
        """What the objects of a run depend on, in this part of a cluster."""
        return Site(
            namespace=namespace,
            installation=installation,
            image=self.image,
            pod_logs=self.pod_logs,
            datasets=self.datasets,
            fetch_secret=self.fetch_secret,
            drain=self.drain,
            domain=self.domain,
            has_mpi_operator=has_mpi_operator,
            overlay=self.overlay,
            pull_policy=self.pull_policy,
        )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Whose:
    """A run of an installation."""

    installation: str
    run_id: RunId


class Composer:
    """Composes runs; asks the cluster only what kinds it has."""

    def __init__(self, cluster: Cluster, terms: Callable[[], Terms], gatherer: Gatherer) -> None:
        self._cluster = cluster
        self._terms = terms
        self._gatherer = gatherer
        self._composed: dict[RunId, Workloads] = {}

    async def compose(self, whose: Whose, plan: Plan, folder: Path) -> Workloads | str:
        """The objects of a run, or what is in their way. ``folder`` is the run's own.

        Raises EngineUnavailable, and UserError for code or data that is not here, or settings that
        say nothing.
        """
        if (known := self._composed.get(whose.run_id)) is not None:
            return known
        brought = await self._gatherer.gather(plan, folder)
        if found := obstacles.obstacles(plan, brought):
            return "; ".join(found)
        site = await self._site(whose, plan)
        composed = workloads.objects(site, whose.run_id, plan, brought)
        if found := obstacles.too_large(composed.objects):
            return "; ".join(found)
        if len(plan.units) > _REMEMBERED_UNITS:
            self._composed[whose.run_id] = composed
        return composed

    async def _site(self, whose: Whose, plan: Plan) -> Site:
        await self._cluster.connect()
        mpi = kinds.MPI_JOB
        has_operator = plan.needs_keys and await self._cluster.has_api(
            mpi.group_version, mpi.plural
        )
        return self._terms().site(
            whose.installation, self._cluster.namespace, has_mpi_operator=has_operator
        )

    def forget(self, run_id: RunId) -> None:
        """A run that is over."""
        self._composed.pop(run_id, None)
