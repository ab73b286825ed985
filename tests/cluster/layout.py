"""Where everything of the test cluster lies, and which addresses it uses.

All files are in one folder outside the source tree, so that ending the cluster is removing what is
in there. What was built is kept: ``bin`` and ``images``.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib

NODE_ADDRESS = "10.99.0.1"
"""On ``lo`` only: the API server refuses loopback as the address it tells others."""

SERVICES = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
PODS = "10.244.0.0/16"
BRIDGE = "anubis-pods0"
ETCD_PORT = 12379
ETCD_PEER_PORT = 12380
DNS_PORT = 10053
DNS_HEALTH_PORT = 10054
KWOK_PORT = 10247
PAUSE_IMAGE = "docker.io/anubis-test/pause:1"


class ClusterTrouble(Exception):
    """The cluster cannot be had, or a part of it does not work; says why."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """Where pods run: what is another one for each."""

    name: str
    address: str
    pods: str
    """Room for 250 pods that end and begin all the time: an address rests before it is used again.
    """

    health: str  #: the address at which its parts tell us how they are
    folder: str = ""  #: its own within each folder of the cluster; the first has the rest
    control_group: str = ""  #: above those of its pods; empty: the machine's own

    @property
    def prefix(self) -> str:
        """Before the names of what lies beside that of other nodes."""
        return f"{self.folder}-" if self.folder else ""


FIRST = Node(
    name="node1",
    address=NODE_ADDRESS,
    pods="10.244.0.0/22",
    health="127.0.0.1",
)
SECOND = Node(
    name="node2",
    address="10.99.0.2",
    pods="10.244.4.0/22",
    health="10.99.0.2",
    folder="node2",
    control_group="anubis-node2",
)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """The folders and files of one cluster, as one of its nodes uses them."""

    root: pathlib.Path
    node: Node = FIRST

    def of(self, node: Node) -> Layout:
        """The same for another node."""
        return dataclasses.replace(self, node=node)

    @property
    def bin(self) -> pathlib.Path:
        """What was built."""
        return self.root / "bin"

    @property
    def manifests(self) -> pathlib.Path:
        """Manifests that came with what was built."""
        return self.root / "manifests"

    @property
    def images(self) -> pathlib.Path:
        """Images made without Docker, as archives."""
        return self.root / "images"

    @property
    def keys(self) -> pathlib.Path:
        """Certificates and their keys."""
        return self.root / "keys"

    @property
    def config(self) -> pathlib.Path:
        """What the parts read at their start."""
        return self.root / "config" / self.node.folder

    @property
    def run(self) -> pathlib.Path:
        """What is worth nothing after a reboot: processes, sockets, what must be put back."""
        return self.root / "run" / self.node.folder

    @property
    def state(self) -> pathlib.Path:
        """What the parts keep: the objects, pods and images of the cluster."""
        return self.root / "state" / self.node.folder

    @property
    def log(self) -> pathlib.Path:
        """What each part says; kept after the end, to look into."""
        return self.root / "log" / self.node.folder

    @property
    def kubeconfig(self) -> pathlib.Path:
        """How to reach the cluster as its administrator; there only while it runs."""
        return self.root / "kubeconfig"

    @property
    def socket(self) -> pathlib.Path:
        """Where containerd listens."""
        return self.run / "containerd.sock"

    @property
    def kind(self) -> pathlib.Path:
        """There if the cluster is one of ``kind``."""
        return self.run / "kind"

    def program(self, name: str) -> str:
        """The path of something that was built."""
        return str(self.bin / name)

    def make_folders(self) -> None:
        """All of them."""
        for folder in (self.bin, self.manifests, self.images, self.keys, self.config):
            folder.mkdir(parents=True, exist_ok=True)
        for folder in (self.run, self.state, self.log):
            folder.mkdir(parents=True, exist_ok=True)


def layout() -> Layout:
    """The one of this user: ``~/.cache/anubis-cluster``, or what ``ANUBIS_CLUSTER_HOME`` names."""
    told = os.environ.get("ANUBIS_CLUSTER_HOME")
    if told:
        return Layout(root=pathlib.Path(told).resolve())
    caches = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return Layout(root=pathlib.Path(caches).resolve() / "anubis-cluster")
