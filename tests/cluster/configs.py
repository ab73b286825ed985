"""The files that the parts of the cluster read at their start.

What differs from a usual cluster has its reason beside it. JSON is YAML too.
"""

from __future__ import annotations

import json
import shutil

from tests.cluster import machine
from tests.cluster.layout import (
    BRIDGE,
    DNS_HEALTH_PORT,
    DNS_PORT,
    DNS_SERVICE,
    NODE_ADDRESS,
    PAUSE_IMAGE,
    PODS,
    Layout,
)

MOST_PODS = 250


def write(place: Layout) -> None:
    """All of them."""
    write_for_node(place)
    (place.config / "Corefile").write_text(_coredns(place))


def write_for_node(place: Layout) -> None:
    """Those that every node has its own of."""
    texts = {
        "containerd.toml": _containerd(place),
        "pods.conflist": _pod_network(place),
        "kubelet.json": _kubelet(place),
        "kube-proxy.json": _kube_proxy(place),
        "resolv.conf": f"nameserver {DNS_SERVICE}\n",
    }
    for name, text in texts.items():
        folder = place.config / "network" if name.endswith("conflist") else place.config
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def dns_objects() -> str:
    """The Service of the name server, which runs outside of the cluster."""
    ports = [{"name": name.lower(), "protocol": name, "port": 53} for name in ("UDP", "TCP")]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": "kube-system"},
        "spec": {
            "clusterIP": DNS_SERVICE,
            "ports": [{**port, "targetPort": DNS_PORT} for port in ports],
        },
    }
    slices = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kube-dns-on-the-machine",
            "namespace": "kube-system",
            "labels": {"kubernetes.io/service-name": "kube-dns"},
        },
        "addressType": "IPv4",
        "ports": [{**port, "port": DNS_PORT} for port in ports],
        "endpoints": [{"addresses": [NODE_ADDRESS], "conditions": {"ready": True}}],
    }
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [service, slices]})


def _containerd(place: Layout) -> str:
    # restrict_oom_score_adj: root without CAP_SYS_RESOURCE could make no pod at all otherwise.
    return f"""version = 2
root = "{place.state}/containerd"
state = "{place.run}/containerd"
[grpc]
  address = "{place.socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{place.state}/containerd-opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  netns_mounts_under_state_dir = true
  disable_apparmor = true
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{machine.plugins()}"
    conf_dir = "{place.config}/network"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{shutil.which("runc")}"
      SystemdCgroup = false
"""


def _pod_network(place: Layout) -> str:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": place.node.pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": f"{place.state}/addresses",
    }
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "ipMasq": False,  # pods do not leave this machine
        "hairpinMode": True,
        "ipam": addresses,
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]})


def _kubelet(place: Layout) -> str:
    settings = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": place.node.address,
        "readOnlyPort": 0,
        "healthzBindAddress": place.node.health,
        "containerRuntimeEndpoint": f"unix://{place.socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{place.node.control_group}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "maxPods": MOST_PODS,
        "serializeImagePulls": False,
        # Small, so that tests see logs rotate.
        "containerLogMaxSize": "1Mi",
        "containerLogMaxFiles": 5,
        "containerLogMonitorInterval": "3s",
        "podLogsDir": "/var/log/pods",
        "resolvConf": f"{place.config}/resolv.conf",
        "clusterDomain": "cluster.local",
        "clusterDNS": [DNS_SERVICE],
        "tlsCertFile": f"{place.keys}/{place.node.prefix}kubelet-serving.crt",
        "tlsPrivateKeyFile": f"{place.keys}/{place.node.prefix}kubelet-serving.key",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{place.keys}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        # A developer's disk is often fuller than a server's; images cannot be pulled again.
        "evictionHard": {
            "memory.available": "200Mi",
            "nodefs.available": "1Gi",
            "imagefs.available": "1Gi",
            "nodefs.inodesFree": "1%",
        },
        "imageGCHighThresholdPercent": 100,
    }
    return json.dumps(settings, indent=1)


def _kube_proxy(place: Layout) -> str:
    settings = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "hostnameOverride": place.node.name,
        "clusterCIDR": PODS,
        "bindAddress": "127.0.0.1",
        "healthzBindAddress": f"{place.node.health}:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "nodePortAddresses": [f"{place.node.address}/32"],
        "clientConnection": {"kubeconfig": f"{place.config}/kube-proxy.kubeconfig"},
        "iptables": {"localhostNodePorts": False},
        "oomScoreAdj": 0,
        # Zero: leave the machine's own limits alone.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }
    return json.dumps(settings, indent=1)


def _coredns(place: Layout) -> str:
    # Short times to live: pods come and go under the same name. Nothing is asked outside.
    return f""".:{DNS_PORT} {{
  bind {NODE_ADDRESS}
  errors
  health 127.0.0.1:{DNS_HEALTH_PORT}
  kubernetes cluster.local in-addr.arpa ip6.arpa {{
    kubeconfig {place.kubeconfig}
    pods insecure
    ttl 1
    fallthrough in-addr.arpa ip6.arpa
  }}
}}
"""
