"""What is kept of an object that is followed: who it is, how it stands, and little of its wishes.

A pod has 10 to 30 kB as JSON, most of it a template that we wrote ourselves, and a list of who
wrote which field. Of a thousand runs that would be the memory of the service.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anubis.adapters.engine.kubernetes.kinds import Found

DROPPED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

DROPPED_SPEC = frozenset(
    {"volumes", "template", "mpiReplicaSpecs", "tolerations", "securityContext", "selector"}
)
"""What we wrote ourselves and never read again. Explaining where a pod stands needs what it asks of
its node: resources, node selector, affinity, gates.
"""

CONTAINERS = ("containers", "initContainers")
KEPT_OF_CONTAINER = ("name", "image", "resources", "restartPolicy")


def trimmed(found: Found) -> Found:
    """The object without what nobody reads."""
    spec = found.get("spec") or {}
    return {
        **found,
        "metadata": _metadata(found["metadata"]),
        "spec": {
            name: [_container(one) for one in value] if name in CONTAINERS else value
            for name, value in spec.items()
            if name not in DROPPED_SPEC
        },
    }


def _container(container: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: container[name] for name in KEPT_OF_CONTAINER if name in container}


def _metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    if DROPPED_ANNOTATION in (kept.get("annotations") or {}):
        annotations = dict(kept["annotations"])
        del annotations[DROPPED_ANNOTATION]
        kept["annotations"] = annotations
    return kept
