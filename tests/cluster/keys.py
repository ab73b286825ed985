"""Certificates for all parts of the cluster, and the files that say how to reach it.

Signed by an authority of our own, which nobody else trusts. Made once; the address they are for
never changes.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import pathlib

from tests.cluster.calling import call
from tests.cluster.layout import API_SERVICE, NODE_ADDRESS, Layout, Node

DAYS = "3650"
CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Certificate:
    """Who somebody is, and whether they are called or call."""

    name: str
    subject: str
    authority: str = "ca"
    is_server: bool = False
    names: str = ""


_OWN_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")
_API_NAMES = ",".join(
    [
        *(f"DNS:{name}" for name in _OWN_NAMES),
        "DNS:kubernetes.default.svc.cluster.local",
        "DNS:localhost",
        *(f"IP:{address}" for address in ("127.0.0.1", NODE_ADDRESS, API_SERVICE)),
    ]
)
CLIENTS = ("kube-controller-manager", "kube-scheduler", "kube-proxy")
CERTIFICATES = (
    Certificate(name="apiserver", subject="/CN=kube-apiserver", is_server=True, names=_API_NAMES),
    Certificate(name="kubelet-client", subject="/O=system:masters/CN=kube-apiserver-kubelet"),
    Certificate(name="front-proxy", subject="/CN=front-proxy-client", authority="front-ca"),
    Certificate(name="admin", subject="/O=system:masters/CN=admin"),
    *(Certificate(name=name, subject=f"/CN=system:{name}") for name in CLIENTS),
)


def make(place: Layout) -> None:
    """Make what is missing, and write down for each part how it reaches the API server."""
    place.keys.chmod(0o700)
    finished = place.keys / "finished"
    if not finished.exists():
        for authority in ("ca", "front-ca"):
            _make_authority(place.keys, authority)
        for certificate in (*CERTIFICATES, *_of_node(place.node)):
            _make_certificate(place.keys, certificate)
        _make_signing_key(place.keys)
        finished.touch()
    for name in CLIENTS:
        _write_kubeconfig(place, name, place.config / f"{name}.kubeconfig")
    _write_kubeconfig(place, "kubelet", place.config / "kubelet.kubeconfig")
    _write_kubeconfig(place, "admin", place.kubeconfig)


def make_for_node(place: Layout) -> None:
    """The same for one more node, of a cluster that has all others."""
    finished = place.keys / f"{place.node.prefix}finished"
    if not finished.exists():
        for certificate in _of_node(place.node):
            _make_certificate(place.keys, certificate)
        finished.touch()
    kubelet = f"{place.node.prefix}kubelet"
    _write_kubeconfig(place, kubelet, place.config / "kubelet.kubeconfig")
    _write_kubeconfig(place, "kube-proxy", place.config / "kube-proxy.kubeconfig")


def _of_node(node: Node) -> tuple[Certificate, Certificate]:
    subject = f"/O=system:nodes/CN=system:node:{node.name}"
    return (
        Certificate(name=f"{node.prefix}kubelet", subject=subject),
        Certificate(
            name=f"{node.prefix}kubelet-serving",
            subject=subject,
            is_server=True,
            names=f"DNS:{node.name},IP:{node.address}",
        ),
    )


def _make_authority(folder: pathlib.Path, name: str) -> None:
    call(
        *("openssl", "req", "-x509", *CURVE, "-days", DAYS, "-subj", f"/CN=anubis-test-{name}"),
        *("-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.crt")),
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"),
        *("-addext", "basicConstraints=critical,CA:TRUE"),
    )


def _make_certificate(folder: pathlib.Path, certificate: Certificate) -> None:
    request, extensions = folder / "request", folder / "extensions"
    key = folder / f"{certificate.name}.key"
    call(
        *("openssl", "req", *CURVE, "-subj", certificate.subject),
        *("-keyout", str(key), "-out", str(request)),
    )
    extensions.write_text(_extensions(certificate))
    authority = folder / certificate.authority
    call(
        *("openssl", "x509", "-req", "-in", str(request), "-days", DAYS, "-CAcreateserial"),
        *("-CA", f"{authority}.crt", "-CAkey", f"{authority}.key"),
        *("-out", str(folder / f"{certificate.name}.crt"), "-extfile", str(extensions)),
    )


def _extensions(certificate: Certificate) -> str:
    lines = [
        "basicConstraints=CA:FALSE",
        "keyUsage=critical,digitalSignature,keyEncipherment",
        f"extendedKeyUsage={'serverAuth' if certificate.is_server else 'clientAuth'}",
    ]
    if certificate.names:
        lines.append(f"subjectAltName={certificate.names}")
    return "\n".join(lines) + "\n"


def _make_signing_key(folder: pathlib.Path) -> None:
    """What tokens of service accounts are signed with."""
    key = str(folder / "tokens.key")
    call("openssl", "genpkey", "-algorithm", "EC", *CURVE[2:4], "-out", key)
    call("openssl", "pkey", "-in", key, "-pubout", "-out", str(folder / "tokens.pub"))


def _write_kubeconfig(place: Layout, name: str, target: pathlib.Path) -> None:
    def text(file: str) -> str:
        return base64.b64encode((place.keys / file).read_bytes()).decode()

    cluster = {
        "server": f"https://{NODE_ADDRESS}:6443",
        "certificate-authority-data": text("ca.crt"),
    }
    user = {
        "client-certificate-data": text(f"{name}.crt"),
        "client-key-data": text(f"{name}.key"),
    }
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "anubis-test", "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "anubis-test", "context": {"cluster": "anubis-test", "user": name}}],
        "current-context": "anubis-test",
    }
    unfinished = target.with_suffix(".unfinished")
    unfinished.touch(mode=0o600)
    unfinished.write_text(json.dumps(content, indent=1) + "\n")
    give_to_caller(unfinished)
    unfinished.rename(target)


def give_to_caller(file: pathlib.Path) -> None:
    """Who called us with ``sudo`` wants to read it too."""
    if os.environ.get("SUDO_UID"):
        os.chown(file, int(os.environ["SUDO_UID"]), int(os.environ.get("SUDO_GID", "-1")))
