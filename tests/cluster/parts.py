"""The parts of the cluster: how each is started, and how one sees that it works."""

from __future__ import annotations

import dataclasses
import http.client
import ssl
import time
from collections.abc import Callable

from tests.cluster import enclosure, machine, processes
from tests.cluster.calling import kubectl, works
from tests.cluster.layout import (
    DNS_HEALTH_PORT,
    ETCD_PEER_PORT,
    ETCD_PORT,
    KWOK_PORT,
    NODE_ADDRESS,
    PODS,
    SERVICES,
    ClusterTrouble,
    Layout,
)

PATIENCE_SECONDS = 180.0
"""For a part to answer: a machine with two cores may have other work."""

LABELS = "node.kubernetes.io/instance-type=anubis.test,topology.kubernetes.io/zone=zone-a"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One process of the cluster."""

    name: str
    command: Callable[[Layout], list[str]]
    answers: Callable[[Layout], bool]


def find(name: str) -> Part:
    """By its name. Raises ClusterTrouble that lists them."""
    for part in (*PARTS, KWOK):
        if part.name == name:
            return part
    known = ", ".join(part.name for part in PARTS)
    raise ClusterTrouble(f"the cluster has no part {name!r}; it has {known}")


def start(place: Layout, part: Part) -> None:
    """Unless it runs already."""
    if processes.find(place, part.name) is None:
        processes.start(place, part.name, [*enclosure.inside(place), *part.command(place)])


def wait(place: Layout, part: Part) -> None:
    """Until it answers. Raises ClusterTrouble with its last words if it does not."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not part.answers(place):
        late = time.monotonic() > deadline
        if late or processes.find(place, part.name) is None:
            what = "does not answer" if late else "has ended"
            raise ClusterTrouble(f"{part.name} {what}:\n{processes.last_words(place, part.name)}")
        time.sleep(0.2)
    if part is KUBELET:
        machine.restore_settings(place)


def says_ok(
    port: int, path: str = "/healthz", *, secure: bool = False, address: str = "127.0.0.1"
) -> bool:
    """Whether something on this machine says that it is well."""
    connection: http.client.HTTPConnection
    if secure:
        # Its certificate is made anew at each start; nobody but us is behind loopback.
        trusting = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(address, port, timeout=5, context=trusting)
    else:
        connection = http.client.HTTPConnection(address, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _healthy(
    port: int, path: str = "/healthz", *, secure: bool = False
) -> Callable[[Layout], bool]:
    def answers(place: Layout) -> bool:
        return says_ok(port, path, secure=secure, address=place.node.health)

    return answers


def _kubelet_answers(place: Layout) -> bool:
    return says_ok(10248, address=place.node.health) and node_is_ready(place)


def node_is_ready(place: Layout) -> bool:
    """Whether pods can run."""
    condition = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    told = ("node", place.node.name, "-o", condition)
    return kubectl(place, "get", *told, check=False).strip() == "True"


def _containerd(place: Layout) -> list[str]:
    return ["containerd", "--config", f"{place.config}/containerd.toml"]


def _etcd(place: Layout) -> list[str]:
    clients, peers = (f"http://127.0.0.1:{port}" for port in (ETCD_PORT, ETCD_PEER_PORT))
    return [
        place.program("etcd"),
        "--name=only",
        f"--data-dir={place.state}/etcd",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=only={peers}",
        "--unsafe-no-fsync",  # a cluster for tests need not survive a power cut
        "--log-level=warn",
    ]


def _api_server(place: Layout) -> list[str]:
    keys = place.keys
    return [
        place.program("kube-apiserver"),
        f"--bind-address={NODE_ADDRESS}",
        f"--advertise-address={NODE_ADDRESS}",
        "--secure-port=6443",
        f"--etcd-servers=http://127.0.0.1:{ETCD_PORT}",
        f"--service-cluster-ip-range={SERVICES}",
        "--allow-privileged=true",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--client-ca-file={keys}/ca.crt",
        f"--tls-cert-file={keys}/apiserver.crt",
        f"--tls-private-key-file={keys}/apiserver.key",
        f"--kubelet-client-certificate={keys}/kubelet-client.crt",
        f"--kubelet-client-key={keys}/kubelet-client.key",
        f"--kubelet-certificate-authority={keys}/ca.crt",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-key-file={keys}/tokens.pub",
        f"--service-account-signing-key-file={keys}/tokens.key",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--requestheader-client-ca-file={keys}/front-ca.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={keys}/front-proxy.crt",
        f"--proxy-client-key-file={keys}/front-proxy.key",
    ]


def _as_client(place: Layout, name: str) -> list[str]:
    kubeconfig = f"{place.config}/{name}.kubeconfig"
    return [
        place.program(name),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",  # there is one of it, which must be back at once after its end
    ]


def _controller_manager(place: Layout) -> list[str]:
    return [
        *_as_client(place, "kube-controller-manager"),
        "--use-service-account-credentials=true",
        "--allocate-node-cidrs=true",
        f"--cluster-cidr={PODS}",
        "--node-cidr-mask-size=22",
        f"--service-cluster-ip-range={SERVICES}",
        f"--root-ca-file={place.keys}/ca.crt",
        f"--service-account-private-key-file={place.keys}/tokens.key",
        f"--cluster-signing-cert-file={place.keys}/ca.crt",
        f"--cluster-signing-key-file={place.keys}/ca.key",
    ]


def _kubelet(place: Layout) -> list[str]:
    return [
        place.program("kubelet"),
        f"--config={place.config}/kubelet.json",
        f"--kubeconfig={place.config}/kubelet.kubeconfig",
        f"--hostname-override={place.node.name}",
        f"--node-ip={place.node.address}",
        f"--node-labels={LABELS}",
        f"--root-dir={place.state}/kubelet",
        f"--cert-dir={place.state}/kubelet/pki",
    ]


def _kwok(place: Layout) -> list[str]:
    return [
        place.program("kwok"),
        f"--config={place.config}/kwok.yaml",
        f"--kubeconfig={place.kubeconfig}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--cidr=10.245.0.0/16",  # apart from the pods of the real node
        f"--server-address=127.0.0.1:{KWOK_PORT}",
    ]


CONTAINERD = Part(
    name="containerd",
    command=_containerd,
    answers=lambda place: works("ctr", "--address", str(place.socket), "version"),
)
ETCD = Part(
    name="etcd",
    command=_etcd,
    answers=_healthy(ETCD_PORT, "/health"),
)
API_SERVER = Part(
    name="kube-apiserver",
    command=_api_server,
    answers=lambda place: bool(kubectl(place, "get", "--raw", "/readyz", check=False)),
)
KUBELET = Part(
    name="kubelet",
    command=_kubelet,
    answers=_kubelet_answers,
)
KUBE_PROXY = Part(
    name="kube-proxy",
    command=lambda place: [place.program("kube-proxy"), f"--config={place.config}/kube-proxy.json"],
    answers=_healthy(10256),
)
KWOK = Part(
    name="kwok",
    command=_kwok,
    answers=_healthy(KWOK_PORT),
)
PARTS = (
    CONTAINERD,
    ETCD,
    API_SERVER,
    Part(
        name="kube-controller-manager",
        command=_controller_manager,
        answers=_healthy(10257, secure=True),
    ),
    Part(
        name="kube-scheduler",
        command=lambda place: _as_client(place, "kube-scheduler"),
        answers=_healthy(10259, secure=True),
    ),
    KUBELET,
    KUBE_PROXY,
    Part(
        name="coredns",
        command=lambda place: [place.program("coredns"), "-conf", f"{place.config}/Corefile"],
        answers=_healthy(DNS_HEALTH_PORT, "/health"),
    ),
)
"""In the order in which they are started."""
