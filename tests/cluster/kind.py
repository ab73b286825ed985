"""A cluster of ``kind``, where that command and its node image can be had.

Whether the image can be had is found out by trying. Parts of such a cluster cannot be killed by
tests: they live inside of one container.
"""

from __future__ import annotations

import json
import shutil

from tests.cluster import parts
from tests.cluster.calling import call
from tests.cluster.keys import give_to_caller
from tests.cluster.layout import ClusterTrouble, Layout
from tests.cluster.saying import say

NAME = "anubis-test"
PATIENCE_SECONDS = 900.0


def up(place: Layout) -> bool:
    """Make the cluster; whether that was possible."""
    if shutil.which("kind") is None:
        return False
    say("making a cluster with kind")
    place.kind.write_text(NAME)
    try:
        _create(place)
    except ClusterTrouble as error:
        say(f"kind cannot make one: {error}")
        down(place)
        return False
    give_to_caller(place.kubeconfig)
    return True


def down(place: Layout) -> None:
    """End it."""
    call(
        "kind", "delete", "cluster", "--name", NAME, f"--kubeconfig={place.kubeconfig}", check=False
    )
    place.kind.unlink(missing_ok=True)


def _create(place: Layout) -> None:
    call(
        *("kind", "create", "cluster", "--name", NAME, "--wait", "180s", "--config", "-"),
        f"--kubeconfig={place.kubeconfig}",
        given=_description(),
        seconds=PATIENCE_SECONDS,
    )


def _description() -> str:
    labels = dict(label.split("=") for label in parts.LABELS.split(","))
    kubelet = {
        "kind": "KubeletConfiguration",
        "maxPods": 250,
        "containerLogMaxSize": "1Mi",
        "containerLogMaxFiles": 5,
        "containerLogMonitorInterval": "3s",
    }
    return json.dumps(
        {
            "apiVersion": "kind.x-k8s.io/v1alpha4",
            "kind": "Cluster",
            "nodes": [{"role": "control-plane", "labels": labels}],
            "kubeadmConfigPatches": [json.dumps(kubelet)],
        }
    )
