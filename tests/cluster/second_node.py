"""A second node, for tests of what must not be on one machine; off unless somebody turns it on.

It has a containerd, a kubelet and a kube-proxy of its own in an ``enclosure``; the rest of the
cluster is the first node's. It goes without a trace, but for images that were loaded into it:
they are kept for the next time, until the cluster ends.
"""

from __future__ import annotations

import os
import shutil

from tests.cluster import configs, enclosure, images, keys, machine, parts, processes
from tests.cluster.calling import kubectl
from tests.cluster.layout import SECOND, ClusterTrouble, Layout

PARTS = (parts.CONTAINERD, parts.KUBELET, parts.KUBE_PROXY)
OWNER = "owner"
"""The record of a test that has the node; who turns it on by hand owns it without a record."""

KEPT = ("containerd", images.RECORD)


def up(place: Layout) -> None:
    """Start it, and wait until pods can run there. Raises ClusterTrouble, and leaves nothing."""
    _up(place)


def up_for_us(place: Layout) -> None:
    """The same for as long as this process lives; see ``is_forsaken``."""
    _up(place, owner=os.getpid())


def _up(place: Layout, *, owner: int | None = None) -> None:
    if place.kind.exists():
        raise ClusterTrouble("a cluster of kind has one node")
    if not place.kubeconfig.exists():
        raise ClusterTrouble("there is no cluster that could have a second node: make cluster")
    machine.need_tools()
    if is_whole(place):
        return
    down(place)  # what a crash has left is no ground to build on
    second = place.of(SECOND)
    second.make_folders()
    try:
        if owner is not None:
            processes.remember(second, OWNER, owner)
        _start(second)
    except ClusterTrouble:
        down(place)
        raise


def down(place: Layout) -> None:
    """End it with all its pods, and remove what it had; also what is left after a crash."""
    if not exists(place):
        return
    end(place)
    if place.kubeconfig.exists():
        forced = ("--force", "--grace-period=0", "--wait=false")
        its = ("--all-namespaces", f"--field-selector=spec.nodeName={SECOND.name}")
        kubectl(place, "delete", "pods", *its, *forced, check=False)
        kubectl(place, "delete", "node", SECOND.name, "--ignore-not-found", check=False)
    shutil.rmtree(place.of(SECOND).run)


def end(place: Layout) -> None:
    """The same, for a cluster that ends altogether."""
    second = place.of(SECOND)
    if not exists(place):
        return
    for part in reversed(PARTS):
        processes.stop(second, part.name)
    machine.end_pods(second)
    enclosure.end(second)
    shutil.rmtree(second.config, ignore_errors=True)
    for path in second.state.iterdir() if second.state.exists() else ():
        if path.is_dir() and path.name not in KEPT:
            shutil.rmtree(path)


def die(place: Layout) -> None:
    """End it as a power cut would: nothing of it says a last word."""
    second = place.of(SECOND)
    enclosure.cut(second)
    for part in reversed(PARTS):
        processes.kill(second, part.name)
    machine.end_pods(second)


def exists(place: Layout) -> bool:
    """Whether there is anything of it, alive or not."""
    return place.of(SECOND).run.exists()


def is_whole(place: Layout) -> bool:
    """Whether all its parts run."""
    return all(status(place).values())


def status(place: Layout) -> dict[str, bool]:
    """Each part, and whether it runs."""
    second = place.of(SECOND)
    names = (enclosure.HOLDER, *(part.name for part in PARTS))
    return {name: processes.find(second, name) is not None for name in names}


def nodes(place: Layout) -> list[Layout]:
    """All that pods can run on now."""
    return [place, place.of(SECOND)] if exists(place) and is_whole(place) else [place]


def is_forsaken(place: Layout) -> bool:
    """Whether it is left of somebody who has crashed."""
    second = place.of(SECOND)
    if not exists(place):
        return False
    had_owner = processes.is_remembered(second, OWNER)
    return not is_whole(place) or (had_owner and processes.find(second, OWNER) is None)


def _start(second: Layout) -> None:
    enclosure.begin(second)
    keys.make_for_node(second)
    configs.write_for_node(second)
    _start_containerd(second)
    if images.forget_containers(second):
        processes.stop(second, parts.CONTAINERD.name)  # it knows them still
        _start_containerd(second)
    images.load_archive(second, images.pause(second))
    for part in PARTS:
        parts.start(second, part)
    for part in PARTS:
        parts.wait(second, part)


def _start_containerd(second: Layout) -> None:
    parts.start(second, parts.CONTAINERD)
    parts.wait(second, parts.CONTAINERD)
