"""A machine within this one, for a node that is to be another machine than the first.

A process that sleeps holds a network of its own and mounts of its own; the parts of the node are
started in there. What they mount, what rules for packets they make and what bridges they build is
gone when the last of them is gone. A cable (``veth``) leads to the network of the machine; pods
have addresses that both sides know the way to. Folders in which nodes keep what is theirs are
others in there, under the same paths.
"""

from __future__ import annotations

import contextlib
import os
import pathlib

from tests.cluster import machine, processes
from tests.cluster.calling import call, until
from tests.cluster.layout import FIRST, ClusterTrouble, Layout

HOLDER = "enclosure"
CABLE, UPLINK = "anubis-node2", "uplink"
"""The two ends: on the machine, where rules know it by how its name begins, and in the node."""

OWN_FOLDERS = ("/var/lib", "/var/log")
"""Which hold what Kubernetes has built in, output of pods, and data that a node keeps for pods."""

PATIENCE_SECONDS = 10.0
CONTROL_GROUPS = pathlib.Path("/sys/fs/cgroup")


def begin(place: Layout) -> None:
    """Make it, unless it is there. Raises ClusterTrouble where the machine does not allow it."""
    if processes.find(place, HOLDER) is not None:
        return
    for folder in OWN_FOLDERS:
        if place.root.is_relative_to(folder):
            raise ClusterTrouble(f"a second node has a {folder} of its own; {place.root} is there")
    words = ("unshare", "--mount", "--net", "--propagation=private", "sleep", "infinity")
    processes.start(place, HOLDER, words)
    until(
        lambda: _is_held(place) or processes.find(place, HOLDER) is None,
        otherwise="the namespaces of a second node are not made",
        seconds=PATIENCE_SECONDS,
    )
    if processes.find(place, HOLDER) is None:
        said = processes.last_words(place, HOLDER)
        raise ClusterTrouble(f"this machine gives no namespaces to a second node: {said}")
    _mount(place)
    _connect(place)
    _make_control_group(place)


def inside(place: Layout) -> list[str]:
    """What comes before a command, so that it is of the node: nothing for the first one."""
    return _entering(place, "--mount", "--net") if place.node.folder else []


def cut(place: Layout) -> None:
    """Pull the cable out of the node: nobody hears anything of it any more."""
    call(*_entering(place, "--net"), "ip", "link", "set", UPLINK, "down")


def end(place: Layout) -> None:
    """Give it back, if it is this cluster's. All else that ran in there has ended."""
    if not processes.is_remembered(place, HOLDER):
        return
    processes.kill(place, HOLDER)
    # With its network it would go by itself, a while later.
    call("ip", "link", "delete", CABLE, check=False)
    machine.remove_control_groups(place)


def _entering(place: Layout, *which: str) -> list[str]:
    holder = processes.find(place, HOLDER)
    if holder is None:
        raise ClusterTrouble(f"{place.node.name} has no namespaces: it is not up")
    return ["nsenter", f"--target={holder.pid}", *which, "--"]


def _is_held(place: Layout) -> bool:
    """Whether the holder has made all, and sleeps."""
    holder = processes.find(place, HOLDER)
    with contextlib.suppress(OSError):
        return holder is not None and _program(holder.pid) == "sleep"
    return False


def _program(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def _mount(place: Layout) -> None:
    """Give it its own folders, and none of what is mounted for pods of the first node."""
    enter, holder = _entering(place, "--mount"), processes.find(place, HOLDER)
    assert holder is not None
    machine.unmount(place, str(holder.pid), enter)
    for path in OWN_FOLDERS:
        folder = place.state / "own" / path.strip("/")
        folder.mkdir(parents=True, exist_ok=True)
        call(*enter, "mount", "--bind", str(folder), path)


def _connect(place: Layout) -> None:
    """Lay the cable, and tell both sides the way to each other's pods."""
    holder, node = processes.find(place, HOLDER), place.node
    assert holder is not None
    _ip(f"link add {CABLE} type veth peer name {UPLINK} netns {holder.pid}")
    _ip(f"link set {CABLE} up")
    # From this address, which the node knows how to answer.
    _ip(f"route replace {node.address} dev {CABLE} src {FIRST.address}")
    _ip(f"route replace {node.pods} via {node.address} src {FIRST.address}")
    enter = _entering(place, "--net")
    _ip("link set lo up", enter)
    _ip(f"address add {node.address}/32 dev {UPLINK}", enter)
    _ip(f"link set {UPLINK} up", enter)
    _ip(f"route replace {FIRST.address} dev {UPLINK}", enter)
    _ip(f"route replace default via {FIRST.address}", enter)
    for name in ("ipv4/ip_forward", "bridge/bridge-nf-call-iptables"):
        # The second is not there where bridges know nothing of rules.
        call(*enter, "sh", "-c", 'test ! -e "$0" || echo 1 >"$0"', f"/proc/sys/net/{name}")


def _ip(words: str, enter: list[str] | None = None) -> None:
    call(*(enter or []), "ip", *words.split())


def _make_control_group(place: Layout) -> None:
    """Kubelets make those of their pods below one that is there, and look at no others."""
    name = place.node.control_group
    unified = CONTROL_GROUPS / "cgroup.controllers"
    if unified.exists():
        for controller in unified.read_text().split():
            with contextlib.suppress(OSError):  # then kubelet will say what it misses
                (CONTROL_GROUPS / "cgroup.subtree_control").write_text(f"+{controller}")
        (CONTROL_GROUPS / name).mkdir(exist_ok=True)
        return
    for hierarchy in CONTROL_GROUPS.iterdir():
        if hierarchy.is_dir() and not hierarchy.is_symlink() and os.path.ismount(hierarchy):
            (hierarchy / name).mkdir(exist_ok=True)
