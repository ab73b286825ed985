"""Nodes that exist only on paper, in a process of their own: the scheduler takes them for real.

Usage: python -m bench.kubernetes.paper_nodes KUBECONFIG NAMESPACE COUNT

It says ``ready`` when pods can come, and goes on until its input ends: then the nodes are removed.
All nodes have the same kubelet, on this machine; see ``paper_kubelet``. The API server trusts it by
a certificate that the cluster itself signs for the first of them.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import secrets
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from bench.kubernetes.paper_kubelet import PaperKubelet
from bench.kubernetes.space import Space

LABEL = "anubis.dev/paper"
LEASE_SECONDS = 10.0
"""A node that does not renew its lease for 40 seconds counts as lost."""

PATIENCE = 60.0
PODS = 250
ROOM = {"cpu": "64", "memory": "256Gi", "pods": str(PODS), "ephemeral-storage": "1Ti"}


def taint(name: str) -> Mapping[str, str]:
    """Keeps all pods away that do not mean these nodes."""
    return {"key": LABEL, "value": name, "effect": "NoSchedule"}


class PaperNodes:
    """All nodes of one bench; their label and their taint have its namespace as value."""

    def __init__(self, space: Space, count: int) -> None:
        self._space = space
        mark = secrets.token_hex(3)
        self.names = [f"paper-{mark}-{number}" for number in range(count)]

    def make(self, address: str, port: int) -> None:
        """Make them, and wait until pods may go there."""
        self._apply([_node(name, self._space.name, address, port) for name in self.names])
        self.renew()
        give_up = time.monotonic() + PATIENCE
        while any(len(one["spec"].get("taints") or ()) != 1 for one in self._found()):
            if time.monotonic() > give_up:
                raise RuntimeError("the cluster does not take the nodes on paper for ready")
            time.sleep(0.3)

    def remove(self) -> None:
        """All of them, and their leases."""
        gone = ("--ignore-not-found", "--wait=false")
        self._space.kubectl("delete", *gone, "nodes", *self.names, check=False)
        leases = ("--namespace=kube-node-lease", "leases", *self.names)
        self._space.kubectl("delete", *gone, *leases, check=False)

    def renew(self) -> None:
        """Say that they live."""
        self._apply([_lease(name) for name in self.names], "--namespace=kube-node-lease")

    def _found(self) -> Sequence[Mapping[str, Mapping[str, Sequence[object]]]]:
        found: Sequence[Mapping[str, Mapping[str, Sequence[object]]]]
        found = self._space.get("nodes", f"--selector={LABEL}={self._space.name}")["items"]
        return found

    def _apply(self, objects: Sequence[Mapping[str, object]], *more: str) -> None:
        whole = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        words = ("apply", "--server-side", "--force-conflicts", "--filename=-", *more)
        self._space.kubectl(*words, given=whole)


def _node(name: str, bench: str, address: str, port: int) -> Mapping[str, object]:
    labels = {LABEL: bench, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "reason": "Paper", "lastHeartbeatTime": at}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [taint(bench)]},
        "status": {
            "capacity": ROOM,
            "allocatable": ROOM,
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        },
    }


def _lease(name: str) -> Mapping[str, object]:
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": moment}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": spec,
    }


@contextlib.contextmanager
def _certified(space: Space, node: str, address: str) -> Iterator[ssl.SSLContext]:
    """TLS for a kubelet, signed by the cluster as it signs for every node that asks."""
    with tempfile.TemporaryDirectory(prefix="anubis-paper-") as folder:
        key, certificate = Path(folder, "key"), Path(folder, "certificate")
        request = _request(node, address, key)
        signed = _sign(space, node, request)
        certificate.write_bytes(signed)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        yield context


def _request(node: str, address: str, key: Path) -> bytes:
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    named = ("-subj", f"/O=system:nodes/CN=system:node:{node}")
    where = ("-addext", f"subjectAltName=IP:{address}")
    command = ["openssl", "req", "-new", *curve, "-keyout", str(key), *named, *where]
    return subprocess.run(command, check=True, capture_output=True).stdout


def _sign(space: Space, node: str, request: bytes) -> bytes:
    wanted = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": node},
        "spec": {
            "request": base64.b64encode(request).decode(),
            "signerName": "kubernetes.io/kubelet-serving",
            "usages": ["digital signature", "server auth"],
        },
    }
    # Only a node may ask for one of its own.
    as_node = (f"--as=system:node:{node}", "--as-group=system:nodes")
    authenticated = "--as-group=system:authenticated"
    space.kubectl(*as_node, authenticated, "create", "--filename=-", given=json.dumps(wanted))
    try:
        space.kubectl("certificate", "approve", node)
        give_up = time.monotonic() + PATIENCE
        while not (signed := space.get("csr", node)["status"].get("certificate")):
            if time.monotonic() > give_up:
                raise RuntimeError("the cluster signs no certificate for a node on paper")
            time.sleep(0.2)
        return base64.b64decode(signed)
    finally:
        space.kubectl("delete", "csr", node, check=False)


def _address(space: Space) -> str:
    """Ours, as the API server sees it."""
    words = ("config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}")
    server = urlsplit(space.kubectl(*words))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect((server.hostname, server.port or 443))
        return str(asking.getsockname()[0])


async def _serve(space: Space, count: int) -> None:
    nodes = PaperNodes(space, count)
    kubelet = PaperKubelet(space.access, space.name)
    address = _address(space)
    routes = web.Application()
    routes.router.add_get("/exec/{namespace}/{pod}/{container}", kubelet.exec)
    runner = web.AppRunner(routes, access_log=None, shutdown_timeout=1)
    await runner.setup()
    with _certified(space, nodes.names[0], address) as tls:
        site = web.TCPSite(runner, address, 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        try:
            await asyncio.to_thread(nodes.make, address, port)
            following = asyncio.create_task(kubelet.follow(frozenset(nodes.names)))
            renewing = asyncio.create_task(_renew(nodes))
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.read)
            following.cancel()
            renewing.cancel()
            await asyncio.gather(following, renewing, return_exceptions=True)
        finally:
            await asyncio.to_thread(nodes.remove)
            await kubelet.close()
            await runner.cleanup()


async def _renew(nodes: PaperNodes) -> None:
    while True:
        await asyncio.sleep(LEASE_SECONDS)
        try:
            await asyncio.to_thread(nodes.renew)
        except RuntimeError as error:
            print(f"paper nodes: {error}", flush=True)


@contextlib.contextmanager
def paper_nodes(space: Space, count: int) -> Iterator[None]:
    """Have so many nodes for a while."""
    words = [space.kubeconfig, space.name, str(count)]
    command = [sys.executable, "-m", "bench.kubernetes.paper_nodes", *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError("the nodes on paper did not come up")
        yield
    finally:
        process.stdin.close()
        print(process.stdout.read(), end="")
        process.stdout.close()
        process.wait(PATIENCE)


if __name__ == "__main__":
    kubeconfig, name, number = sys.argv[1:]
    asyncio.run(_serve(Space(name=name, kubeconfig=kubeconfig), int(number)))
