"""All objects of a run, and which of them each unit needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Final

from anubis.adapters.engine.kubernetes import naming
from anubis.adapters.engine.kubernetes.manifests import (
    carrying,
    hosting,
    job,
    mpi_job,
    pod,
    secret,
)
from anubis.adapters.engine.kubernetes.manifests.shapes import Manifest
from anubis.adapters.engine.kubernetes.manifests.site import Brought, Carried, Setting, Site
from anubis.adapters.engine.kubernetes.manifests.template import Template
from anubis.adapters.engine.kubernetes.naming import Names
from anubis.domain import plan as plans
from anubis.domain.plan import Plan, Unit
from anubis.domain.run import RunId

__all__ = ["Brought", "Carried", "Site", "Workload", "Workloads", "objects"]

_OPEN_MPI: Final = {"OMPI_MCA_orte_keep_fqdn_hostnames": "true"}
"""Open MPI cuts the names of hosts at their first dot, and would not find them."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """An object that makes the pods of some units."""

    manifest: Manifest
    units: tuple[str, ...]
    index_label: str = ""  #: the label that tells the pods of several workers apart
    launcher: str = ""  #: which of the units has no number, beside those that have

    @property
    def kind(self) -> str:
        """``Job`` or ``MPIJob``."""
        return str(self.manifest["kind"])

    @property
    def name(self) -> str:
        """As the cluster knows it."""
        metadata = self.manifest["metadata"]
        assert isinstance(metadata, dict)
        return str(metadata["name"])

    def labels_of(self, unit: str) -> dict[str, str]:
        """What tells the pod of a unit from all others of the run."""
        if not self.index_label or unit == self.launcher:
            return {naming.UNIT: unit}
        name, _, index = unit.rpartition("-")
        return {naming.UNIT: name, self.index_label: index}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Workloads:
    """The objects of a run."""

    names: Names
    shared: tuple[Manifest, ...]  #: what must be there before any pod
    workloads: tuple[Workload, ...]

    @property
    def objects(self) -> tuple[Manifest, ...]:
        """All of them, in the order in which they are applied."""
        return (*self.shared, *(workload.manifest for workload in self.workloads))

    def of(self, unit: str) -> Workload:
        """What makes the pod of a unit."""
        return next(workload for workload in self.workloads if unit in workload.units)

    def for_unit(self, unit: str) -> tuple[Manifest, ...]:
        """What must be applied to start a unit, in this order. May start others as well."""
        return (*self.shared, self.of(unit).manifest)

    def pod_of(self, unit: str) -> str:
        """The selector of a unit's pod."""
        labels = self.of(unit).labels_of(unit)
        return ",".join([self.names.selector, *(f"{key}={text}" for key, text in labels.items())])


def objects(site: Site, run_id: RunId, plan: Plan, brought: Brought) -> Workloads:
    """What Kubernetes is told of a run. The plan must have no obstacles."""
    setting = _setting(site, run_id, plan, brought)
    found = tuple(_workloads(setting))
    is_named = any(workload.kind == "MPIJob" for workload in found)
    return Workloads(
        names=setting.names, shared=tuple(_shared(setting, is_named=is_named)), workloads=found
    )


def _setting(site: Site, run_id: RunId, plan: Plan, brought: Brought) -> Setting:
    names = Names(installation=site.installation, namespace=site.namespace, run_id=run_id)
    filled = plans.filled(plan, hosting.meanings(names, plan))
    if plan.needs_keys:
        units = tuple(_told_of_names(unit) for unit in filled.units)
        filled = dataclasses.replace(filled, units=units)
    return Setting(site=site, names=names, plan=filled, brought=brought)


def _told_of_names(unit: Unit) -> Unit:
    return dataclasses.replace(unit, environment={**_OPEN_MPI, **unit.environment})


def _shared(setting: Setting, *, is_named: bool) -> Iterator[Manifest]:
    labels = pod.labels(setting)
    yield from secret.secret(setting, labels)
    yield from carrying.secrets(setting, labels)
    if hosting.needs_service(setting.plan) and not is_named:
        yield hosting.service(setting, labels)


def _workloads(setting: Setting) -> Iterator[Workload]:
    workers = _alike(setting.plan)
    others = [unit for unit in setting.plan.units if unit not in workers]
    if workers and setting.site.has_mpi_operator and [u.name for u in others] == [hosting.LAUNCHER]:
        yield _mpi_job(setting, others[0], workers)
        return
    if workers:
        yield _indexed(setting, workers)
    for unit in others:
        made = job.single(setting, Template(unit=unit, label=unit.name))
        yield Workload(manifest=made, units=(unit.name,))


def _alike(plan: Plan) -> Sequence[Unit]:
    """The workers of a plan whose ranks talk over ssh, if one template can serve them all."""
    found = [unit for unit in plan.units if unit.name.startswith(f"{hosting.WORKER}-")]
    names = [f"{hosting.WORKER}-{number}" for number in range(len(found))]
    same = all(dataclasses.replace(unit, name=found[0].name) == found[0] for unit in found)
    return found if plan.needs_keys and same and [u.name for u in found] == names else ()


def _mpi_job(setting: Setting, launcher: Unit, workers: Sequence[Unit]) -> Workload:
    label = naming.REPLICA_INDEX
    worker = Template(unit=workers[0], label=hosting.WORKER, index_label=label)
    first = Template(unit=launcher, label=launcher.name)
    return Workload(
        manifest=mpi_job.mpi_job(setting, first, worker, len(workers)),
        units=(*(unit.name for unit in workers), launcher.name),
        index_label=label,
        launcher=launcher.name,
    )


def _indexed(setting: Setting, workers: Sequence[Unit]) -> Workload:
    label = naming.COMPLETION_INDEX
    template = Template(unit=workers[0], label=hosting.WORKER, index_label=label)
    return Workload(
        manifest=job.indexed(setting, template, len(workers)),
        units=tuple(unit.name for unit in workers),
        index_label=label,
    )
