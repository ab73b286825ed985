"""How the settings describe a cluster, and what pods are like there."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.composing import Terms
from anubis.domain.errors import UserError
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


async def examined(settings: Settings) -> Report:
    """Who answers, and whether we may do what we must. Raises EngineUnavailable, and UserError for
    settings that are wrong.
    """
    # Here and not above: whoever plans a run for a cluster does not ask it anything.
    from anubis.adapters.engine.kubernetes import rights
    from anubis.adapters.engine.kubernetes.cluster import Cluster

    terms(settings)
    cluster = Cluster(access(settings))
    try:
        version = await cluster.version()
        missing = await rights.missing(cluster)
        refusal = "" if missing else await _refusal(cluster)
    finally:
        await cluster.close()
    words = f"{version.version} at {cluster.server}, namespace {cluster.namespace}"
    return Report(words=words, missing=missing, refusal=refusal)


async def _refusal(cluster: Cluster) -> str:
    """Why nothing can be made there, in the cluster's words. Nothing is made. That a namespace is
    not there is seen in no other way without a further right: its pods are none.
    """
    from anubis.adapters.engine.kubernetes.refusals import Refused

    metadata = {"name": "anubis-doctor", "namespace": cluster.namespace}
    try:
        await cluster.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}, dry_run=True
        )
    except Refused as error:
        return str(error)
    return ""
