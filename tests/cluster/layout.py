"""Where everything of the test cluster lies, and which addresses it uses.

All files are in one folder outside the source tree, so that ending the cluster is removing what is
in there. What was built is kept: ``bin`` and ``images``.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib

NODE = "node1"
NODE_ADDRESS = "10.99.0.1"
"""On ``lo`` only: the API server refuses loopback as the address it tells others."""

SERVICES = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
PODS = "10.244.0.0/16"
PODS_OF_NODE = "10.244.0.0/22"
"""Room for 250 pods that end and begin all the time: an address rests before it is used again."""

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
class Layout:
    """The folders and files of one cluster."""

    root: pathlib.Path

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
        return self.root / "config"

    @property
    def run(self) -> pathlib.Path:
        """What is worth nothing after a reboot: processes, sockets, what must be put back."""
        return self.root / "run"

    @property
    def state(self) -> pathlib.Path:
        """What the parts keep: the objects, pods and images of the cluster."""
        return self.root / "state"

    @property
    def log(self) -> pathlib.Path:
        """What each part says; kept after the end, to look into."""
        return self.root / "log"

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
