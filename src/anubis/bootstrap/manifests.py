"""What Kubernetes would get for a run, without a run: ``anubis manifest``.

The very functions that the engine uses. What is only known of a run that exists is stood for: its
id by zeros, keys and code by words that say what would be there.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from anubis.adapters.engine.kubernetes import kinds
from anubis.adapters.engine.kubernetes.capabilities import KUBERNETES
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.engine import INSTALLATION
from anubis.adapters.engine.kubernetes.gathering import is_local
from anubis.adapters.engine.kubernetes.manifests import obstacles, workloads
from anubis.adapters.engine.kubernetes.manifests.site import Brought, Carried, Site
from anubis.bootstrap import clusters, engines, submitting
from anubis.bootstrap.application import Manifested, Submission
from anubis.bootstrap.local import LocalApplication
from anubis.domain import dataset
from anubis.domain import plan as plans
from anubis.domain.errors import EngineUnavailable, UserError
from anubis.domain.plan import Plan
from anubis.domain.run import RunId
from anubis.settings.model import Settings

NO_RUN: Final = RunId("00000000-0000-7000-8000-000000000000")
"""Stands for the id that a run would get."""

NO_INSTALLATION: Final = "00000000"
DEFAULT_NAMESPACE: Final = "default"
_KEYS: Final = ("id", "id.pub", "host", "host.pub")


async def manifested(
    application: LocalApplication, submission: Submission, namespace: str
) -> Manifested:
    """The objects that a submission would get now. See ``Application``."""
    settings = application.settings
    if namespace:
        settings = dataclasses.replace(settings, kubernetes_namespace=namespace)
    parsed = await application.parsed(submission.document)
    once = dataclasses.replace(submission, wants_it_now=True, engine=KUBERNETES.name)
    with submitting.placing_problems(submission.document):
        request = submitting.request(once, parsed.descriptor, KUBERNETES, slots=settings.slots)
        submitting.must_be_fetchable(request, settings)
        plan = _without_signatures(request.plan)
        brought = _stand_ins(plan)
        if wrong := obstacles.obstacles(plan, brought):
            raise UserError("\n".join(wrong))
    site, notes = await _site(settings, plan)
    made = workloads.objects(site, NO_RUN, plan, brought).objects
    if wrong := obstacles.too_large(made):
        raise UserError("\n".join(wrong))
    return Manifested(objects=made, notes=notes, warnings=parsed.warnings)


def _without_signatures(plan: Plan) -> Plan:
    """Addresses as people may see them."""
    fetches = tuple(dataclasses.replace(fetch, uri=_safe(fetch.uri)) for fetch in plan.fetches)
    return dataclasses.replace(plan, fetches=fetches)


def _safe(uri: str) -> str:
    shown = dataset.shown(uri)
    return uri if shown == uri else f"{shown}?"  # still one that belongs into the Secret


def _stand_ins(plan: Plan) -> Brought:
    """What the engine would bring, in words."""
    keys = {name: f"<{name}: made for each run>\n" for name in _KEYS} if plan.needs_keys else {}
    return Brought(
        keys=keys,
        scripts={name: f"<the archive {name}>".encode() for name in plans.scripts(plan)},
        data={
            number: Carried(name=fetch.uri.rpartition("/")[2], content=f"<{fetch.uri}>".encode())
            for number, fetch in enumerate(plan.fetches)
            if is_local(fetch)
        },
    )


async def _site(settings: Settings, plan: Plan) -> tuple[Site, tuple[str, ...]]:
    """The cluster as it is; and what is only supposed, where it does not say."""
    terms = clusters.terms(settings)
    found = DEFAULT_NAMESPACE, False
    notes: tuple[str, ...] = ()
    if why := engines.absence(settings, KUBERNETES.name):
        notes = (f"no cluster was asked. {why}",)
    else:
        try:
            found = await _asked(settings, needs_operator=plan.needs_keys)
        except EngineUnavailable as error:
            notes = (f"the cluster did not answer, its parts are supposed: {error}",)
    namespace, has_operator = found
    site = terms.site(
        _installation(settings),
        settings.kubernetes_namespace or namespace,
        has_mpi_operator=has_operator,
    )
    return site, notes


async def _asked(settings: Settings, *, needs_operator: bool) -> tuple[str, bool]:
    cluster = Cluster(clusters.access(settings))
    try:
        await cluster.connect()
        mpi = kinds.MPI_JOB
        has_operator = needs_operator and await cluster.has_api(mpi.group_version, mpi.plural)
        return cluster.namespace, has_operator
    finally:
        await cluster.close()


def _installation(settings: Settings) -> str:
    """The id that the engine gave itself when it was first used."""
    try:
        return (settings.cluster / INSTALLATION).read_text("utf-8").strip() or NO_INSTALLATION
    except FileNotFoundError:
        return NO_INSTALLATION
