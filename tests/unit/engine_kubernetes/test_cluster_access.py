"""Ways into a cluster: kubeconfigs with all kinds of credentials, and the account of a pod."""

from __future__ import annotations

import base64
import json
import pathlib
import ssl
import sys
import tempfile
from collections.abc import AsyncIterator

import pytest
import trustme
from aiohttp import web
from tests import kubernetes_api
from tests.kubernetes_api import Api

from anubis.adapters.engine.kubernetes import access
from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.domain.errors import EngineUnavailable

PLUGIN = """
import json, pathlib, sys
count = pathlib.Path(sys.argv[1])
number = len(count.read_text()) if count.exists() else 0
count.write_text("x" * (number + 1))
status = {"token": f"token-{number}", "expirationTimestamp": sys.argv[2]}
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                  "status": status}))
"""


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def api(authority: trustme.CA) -> AsyncIterator[Api]:
    """A server with TLS, that wants to see no certificate but takes one."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.configure_trust(tls)
    tls.verify_mode = ssl.CERT_OPTIONAL
    async with Api().serving(tls) as serving:
        serving.handle = _version
        yield serving


async def _version(request: web.Request) -> web.StreamResponse:
    return web.json_response({"gitVersion": "v1.36.3", "platform": "linux/amd64"})


@pytest.fixture
def ca(authority: trustme.CA, tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "ca.crt"
    authority.cert_pem.write_to_path(str(path))
    return path


async def answered(kubeconfig: str | None) -> Cluster:
    """A cluster that has answered once and is closed; what it knows is still there."""
    cluster = Cluster(Access(kubeconfig=kubeconfig))
    try:
        assert (await cluster.version()).version == "v1.36.3"
    finally:
        await cluster.close()
    return cluster


async def test_the_namespace_is_that_of_the_setting_or_of_the_context(
    tmp_path: pathlib.Path,
) -> None:
    path = kubernetes_api.kubeconfig(tmp_path / "config", "http://127.0.0.1:1")
    for wanted, namespace in [("", "ours"), ("mine", "mine")]:
        cluster = Cluster(Access(kubeconfig=path, namespace=wanted))
        await cluster.connect()
        assert cluster.namespace == namespace
        await cluster.close()


async def test_the_account_of_a_pod_opens_its_cluster(
    api: Api, ca: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "ACCOUNT", tmp_path)
    host, _, port = api.address.removeprefix("https://").partition(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    (tmp_path / "token").write_text("of the account\n")
    (tmp_path / "namespace").write_text("where-we-live\n")

    cluster = await answered(None)

    assert cluster.namespace == "where-we-live"
    assert api.asked[0].headers["Authorization"] == "Bearer of the account"
    assert "the service account of this pod" in cluster.words


async def test_a_certificate_says_who_we_are_and_no_key_is_left_in_a_file(
    api: Api,
    authority: trustme.CA,
    ca: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = tmp_path / "temporary"
    files.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(files))
    ours = authority.issue_cert("anubis@example.org")
    data = {
        "client-certificate-data": _encoded(ours.cert_chain_pems[0].bytes()),
        "client-key-data": _encoded(ours.private_key_pem.bytes()),
    }
    path = kubernetes_api.kubeconfig(tmp_path / "config", api.address, ca=ca, **data)
    seen: list[object] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        seen.append(request.transport.get_extra_info("peercert"))
        return await _version(request)

    api.handle = handle
    await answered(path)

    assert "anubis@example.org" in str(seen)
    assert not list(files.iterdir())


async def test_a_plugin_is_asked_again_when_what_it_gave_has_run_out(
    api: Api, ca: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "plugin.py").write_text(PLUGIN)

    def kubeconfig(until: str) -> str:
        count = str(tmp_path / f"count-{until}")
        plugin = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(tmp_path / "plugin.py"), count, until],
            "interactiveMode": "Never",
        }
        return kubernetes_api.kubeconfig(tmp_path / "config", api.address, ca=ca, exec=plugin)

    for until, tokens in [
        ("2020-01-01T00:00:00Z", ["token-1", "token-2"]),
        ("2120-01-01T00:00:00Z", ["token-0", "token-0"]),
    ]:
        api.asked.clear()
        cluster = Cluster(Access(kubeconfig=kubeconfig(until)))
        await cluster.version()
        await cluster.version()
        await cluster.close()
        assert [one.headers["Authorization"] for one in api.asked] == [
            f"Bearer {token}" for token in tokens
        ]


async def test_a_server_whose_certificate_nobody_vouches_for_gets_no_token(
    api: Api, tmp_path: pathlib.Path
) -> None:
    other = tmp_path / "other.crt"
    trustme.CA().cert_pem.write_to_path(str(other))
    path = kubernetes_api.kubeconfig(tmp_path / "config", api.address, ca=other, token="secret")

    with pytest.raises(EngineUnavailable, match=r"(?i)certificate verify failed"):
        await answered(path)
    assert not api.asked


def _naming(cluster: dict[str, str]) -> dict[str, object]:
    context = {"name": "k", "context": {"cluster": "k", "user": "k"}}
    return {
        "current-context": "k",
        "contexts": [context],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "k", "user": {}}],
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "while parsing"),
        ("", "expected a kubeconfig"),
        ("[]", "expected a kubeconfig"),
        (json.dumps(_naming({})), "expected a kubeconfig"),
        (json.dumps(_naming({"server": "here:6443"})), "expected https://HOST:PORT"),
        (json.dumps({"current-context": "k", "contexts": [], "clusters": []}), "name k in"),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used_is_named(
    tmp_path: pathlib.Path, content: str, words: str
) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    cluster = Cluster(Access(kubeconfig=str(path)))

    with pytest.raises(EngineUnavailable, match="cannot be used") as caught:
        await cluster.connect()
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


async def test_a_library_that_is_missing_is_named_with_what_to_install(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes_asyncio", None)
    path = kubernetes_api.kubeconfig(tmp_path / "config", "http://127.0.0.1:1")

    with pytest.raises(EngineUnavailable, match=r"pip install 'anubis\[kubernetes\]'"):
        await Cluster(Access(kubeconfig=path)).connect()


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
