"""How the settings describe a cluster, and what pods are like there."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.composing import Terms
from anubis.domain import plan
from anubis.domain.errors import UserError
from anubis.domain.run import RunId
from anubis.settings.model import Settings

if TYPE_CHECKING:
    from anubis.adapters.engine.kubernetes.cluster import Cluster

_PULL: Mapping[str, str] = {"always": "Always", "missing": "IfNotPresent", "never": "Never"}
_LARGEST_OVERLAY = 1024**2


def access(settings: Settings) -> Access:
    """Which cluster, and which part of it."""
    named = settings.kubeconfig or "~/.kube/config"
    is_there = any(Path(one).expanduser().is_file() for one in named.split(":") if one)
    in_pod = not settings.kubeconfig and not is_there
    return Access(
        kubeconfig=None if in_pod else str(Path(named).expanduser()),
        context=settings.kubernetes_context,
        namespace=settings.kubernetes_namespace,
    )


def terms(settings: Settings) -> Terms:
    """What pods are like. Raises UserError for a file that is no part of a pod."""
    return Terms(
        image=settings.kubernetes_image,
        pod_logs=settings.kubernetes_pod_logs,
        datasets=settings.kubernetes_datasets,
        fetch_secret=settings.kubernetes_secret,
        drain=settings.kubernetes_drain,
        domain=settings.kubernetes_domain,
        pull_policy=_PULL[settings.pull],
        overlay=_overlay(settings.kubernetes_pod) if settings.kubernetes_pod else {},
    )


def _overlay(path: Path) -> dict[str, Any]:
    # Here and not above: most installations have none.
    import yaml

    try:
        if path.stat().st_size > _LARGEST_OVERLAY:
            raise UserError(f"{path}: found more than 1 MiB, expected a part of a pod")
        found = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    if not isinstance(found, dict) or not set(found) <= {"metadata", "spec"}:
        raise UserError(f"{path}: found {str(found)[:80]!r}, expected metadata and spec of a pod")
    # A table of which all is commented out says nothing.
    said = {name: part for name, part in found.items() if part is not None}
    try:
        wrong = next(_wrong(said), "")
    except RecursionError:  # a table that is a part of itself
        wrong = "found tables within tables without an end, expected a part of a pod"
    if wrong:
        raise UserError(f"{path}: {wrong}")
    return said


def _wrong(overlay: Mapping[str, object]) -> Iterator[str]:
    """What no cluster could be told, or what would take away all that is below it."""
    for name, part in overlay.items():
        if not isinstance(part, dict):
            yield f"{name}: found {str(part)[:80]!r}, expected a table"
        yield from _not_json(part, name)


def _not_json(value: object, where: str) -> Iterator[str]:
    """YAML knows more than JSON, and more texts than look like one: ``since: 2024-01-31``."""
    if isinstance(value, dict):
        for name, part in value.items():
            if not isinstance(name, str):
                yield f"{where}: found the key {name!r}, expected a text; put it in quotes"
            yield from _not_json(part, f"{where}.{name}")
        if "name" in value and not isinstance(value["name"], str):
            yield f"{where}.name: found {value['name']!r}, expected a text"
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _not_json(part, f"{where}.{number}")
    elif not isinstance(value, str | int | None) and not _is_number(value):
        yield f"{where}: found {value!r}, expected a text, a number or a table; put it in quotes"


def _is_number(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """A cluster, for people."""

    words: str
    missing: tuple[str, ...]  #: rights that the engine needs and does not have
    refusal: str = ""  #: why the cluster would not take what we make, such as a missing namespace
    advice: str = ""  #: what to do about that


async def examined(settings: Settings) -> Report:
    """Who answers, and whether we may do what we must. Raises EngineUnavailable, and UserError for
    settings that are wrong.
    """
    # Here and not above: whoever plans a run for a cluster does not ask it anything.
    from anubis.adapters.engine.kubernetes import phrasing, rights
    from anubis.adapters.engine.kubernetes.cluster import Cluster

    terms(settings)
    cluster = Cluster(access(settings))
    try:
        version = await cluster.version()
        missing = await rights.missing(cluster)
        refusal = "" if missing else await _refusal(cluster, settings)
    finally:
        await cluster.close()
    words = f"{version.version} at {cluster.server}, namespace {cluster.namespace}"
    advice = phrasing.advice(refusal) or "make the namespace"
    return Report(words=words, missing=missing, refusal=refusal, advice=advice)


async def _refusal(cluster: Cluster, settings: Settings) -> str:
    """Why what we make is not wanted there, in the cluster's words. Nothing is made. That a
    namespace is not there is seen in no other way without a further right: its pods are none.
    """
    from anubis.adapters.engine.kubernetes import phrasing
    from anubis.adapters.engine.kubernetes.refusals import NotPermitted, Refused

    metadata = {"name": "anubis-doctor", "namespace": cluster.namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    try:
        await cluster.apply(secret, dry_run=True)
        # Pods are made by the cluster's controllers, so that we need no right to.
        with contextlib.suppress(NotPermitted):
            await cluster.apply(_pod(settings, metadata), dry_run=True)
    except Refused as error:
        return "" if error.is_quota else phrasing.plain(str(error))
    return ""


def _pod(settings: Settings, metadata: Mapping[str, str]) -> dict[str, Any]:
    """One like those of runs, with the recorder and all that it needs."""
    from anubis.adapters.engine.kubernetes.manifests import workloads
    from anubis.adapters.engine.kubernetes.manifests.site import Brought

    unit = plan.Unit(name="benchmark", command=("true",), environment={}, image="none")
    alone = plan.Plan(units=(unit,), metrics=(), limits=plan.Limits(), deciding=unit.name)
    site = terms(settings).site("", metadata["namespace"], has_mpi_operator=False)
    [job] = workloads.objects(site, RunId(metadata["name"]), alone, Brought()).objects
    made: Any = job["spec"]
    spec = made["template"]["spec"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
