"""Nodes that exist only on paper, by kwok: the scheduler takes them for real, no program runs.

A pod on such a node is said to run and, if a Job owns it, to end well. They carry a taint, so that
only pods that mean them land there.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence

from tests.cluster import building, parts, processes
from tests.cluster.calling import kubectl
from tests.cluster.layout import Layout

MARK = "kwok.x-k8s.io/node"
TAINT = {"key": MARK, "value": "fake", "effect": "NoSchedule"}


def up(place: Layout) -> None:
    """Start kwok, which cares for all nodes with our mark."""
    building.build(place, [building.KWOK])
    # How a node and a pod go from one state to the next, as kwok's project has it.
    stages = kubectl(place, "kustomize", str(place.manifests / "kwok" / "fast"))
    (place.config / "kwok.yaml").write_text(stages)
    parts.start(place, parts.KWOK)
    parts.wait(place, parts.KWOK)


def down(place: Layout) -> None:
    """Remove all such nodes, and end kwok."""
    kubectl(place, "delete", "nodes", "--selector", "type=kwok", check=False)
    processes.stop(place, parts.KWOK.name)


@contextlib.contextmanager
def nodes(
    place: Layout,
    names: Sequence[str],
    *,
    labels: Mapping[str, str] | None = None,
    resources: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Have these nodes for a while. ``resources``: such as cpu, memory, nvidia.com/gpu."""
    ran = processes.find(place, parts.KWOK.name) is not None
    up(place)
    capacity = {"cpu": "32", "memory": "256Gi", "pods": "110", **(resources or {})}
    made = [_node(name, labels or {}, capacity) for name in names]
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
    kubectl(place, "apply", "-f", "-", given=content)
    try:
        kubectl(place, "wait", "--for=condition=Ready", "--timeout=60s", "node", *names)
        yield
    finally:
        kubectl(place, "delete", "--ignore-not-found", "node", *names)
        if not ran:
            processes.stop(place, parts.KWOK.name)


def _node(name: str, labels: Mapping[str, str], capacity: Mapping[str, str]) -> dict[str, object]:
    usual = {"type": "kwok", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": {MARK: "fake"}, "labels": {**usual, **labels}},
        "spec": {"taints": [TAINT]},
        "status": {"allocatable": capacity, "capacity": capacity},
    }
