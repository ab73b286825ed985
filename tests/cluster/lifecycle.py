"""Bring the cluster up, and take it down again.

Both may be called at any time: what runs already is left alone, what has crashed is started again,
and only what was started here is ended.
"""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Sequence

from tests.cluster import (
    building,
    configs,
    images,
    keys,
    kind,
    locking,
    machine,
    parts,
    processes,
    second_node,
)
from tests.cluster.calling import kubectl, until
from tests.cluster.layout import NODE_ADDRESS, SECOND, ClusterTrouble, Layout
from tests.cluster.saying import say

LAST = ("kube-apiserver", "etcd", "containerd")
"""What the others need until they have ended."""


def up(place: Layout, *, with_kind: bool = True) -> bool:
    """Make sure that a cluster runs; whether none did before. Raises ClusterTrouble."""
    place.make_folders()
    with locking.changing(place):
        ran = _runs(place)
        if is_whole(place):
            say(f"a cluster is up already: {place.kubeconfig}")
            return False
        if with_kind and not ran and kind.up(place):
            return True
        machine.need_tools()
        building.build(place)
        _refuse_another(place)
        began = time.monotonic()
        _start(place)
        say(f"the cluster is up ({time.monotonic() - began:.0f} s): {place.kubeconfig}")
        return not ran


def down(place: Layout) -> None:
    """End the cluster, remove its objects and pods, and give the machine back."""
    place.make_folders()
    with locking.changing(place):
        place.kubeconfig.unlink(missing_ok=True)
        if place.kind.exists():
            kind.down(place)
            return
        machine.need_tools()
        second_node.end(place)
        for name in _ending():
            if processes.stop(place, name):
                say(f"{name} has ended")
        machine.give_back(place)
        for folder in (place.state, place.run, place.config):
            shutil.rmtree(folder)


def load(place: Layout, names: Sequence[str]) -> list[str]:
    """Copy images from Docker to all nodes; which of them some node did not have."""
    loaded = [name for node in second_node.nodes(place) for name in images.load(node, names)]
    return list(dict.fromkeys(loaded))


def is_whole(place: Layout) -> bool:
    """Whether all parts run, and the API server answers."""
    if not place.kubeconfig.exists() or is_torn(place):
        return False
    return bool(kubectl(place, "get", "--raw", "/readyz", check=False))


def is_torn(place: Layout) -> bool:
    """Whether a part of it does not run."""
    dead = [part for part in parts.PARTS if processes.find(place, part.name) is None]
    return bool(dead) and not place.kind.exists()


def status(place: Layout) -> dict[str, bool]:
    """Each part, and whether it runs."""
    known = (*parts.PARTS, parts.KWOK)
    found = {part.name: processes.find(place, part.name) is not None for part in known}
    if second_node.exists(place):
        of_second = second_node.status(place).items()
        found |= {f"{name} of {SECOND.name}": lives for name, lives in of_second}
    return found


def _start(place: Layout) -> None:
    machine.prepare(place)
    keys.make(place)
    configs.write(place)
    for part in parts.PARTS[:3]:  # each needs the one before
        parts.start(place, part)
        parts.wait(place, part)
        if part is parts.CONTAINERD:
            images.load_archive(place, images.pause(place))
    for part in parts.PARTS[3:]:
        parts.start(place, part)
    for part in parts.PARTS[3:]:
        parts.wait(place, part)
    kubectl(place, "apply", "--server-side", "-f", "-", given=configs.dns_objects())
    until(
        lambda: bool(kubectl(place, "get", "serviceaccount", "default", check=False)),
        otherwise="no service account was made: the controllers do not work",
        seconds=parts.PATIENCE_SECONDS,
    )


def _runs(place: Layout) -> bool:
    return any(status(place).values())


def _refuse_another(place: Layout) -> None:
    """A cluster that somebody else has started on this machine is not ours to touch."""
    if _runs(place) or not machine.has_address():
        return
    try:
        with socket.create_connection((NODE_ADDRESS, 6443), timeout=1):
            pass
    except OSError:
        return
    raise ClusterTrouble(f"another cluster listens on {NODE_ADDRESS}:6443 of this machine")


def _ending() -> list[str]:
    names = [part.name for part in (parts.KWOK, *reversed(parts.PARTS)) if part.name not in LAST]
    return [*names, *LAST]
