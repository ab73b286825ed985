"""How the settings describe a cluster, and what pods are like there."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.composing import Terms
from anubis.domain.errors import UserError
from anubis.settings.model import Settings

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
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    if not isinstance(found, dict) or not set(found) <= {"metadata", "spec"}:
        raise UserError(f"{path}: found {str(found)[:80]!r}, expected metadata and spec of a pod")
    return found


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """A cluster, for people."""

    words: str
    missing: tuple[str, ...]  #: rights that the engine needs and does not have


async def examined(settings: Settings) -> Report:
    """Who answers, and whether we may do what we must. Raises EngineUnavailable."""
    # Here and not above: whoever plans a run for a cluster does not ask it anything.
    from anubis.adapters.engine.kubernetes import rights
    from anubis.adapters.engine.kubernetes.cluster import Cluster

    cluster = Cluster(access(settings))
    try:
        version = await cluster.version()
        missing = await rights.missing(cluster)
    finally:
        await cluster.close()
    words = f"{version.version} at {cluster.server}, namespace {cluster.namespace}"
    return Report(words=words, missing=missing)
