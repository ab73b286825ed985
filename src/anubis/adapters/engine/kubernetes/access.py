"""Where the cluster is and who we are there: a kubeconfig, or the account of our own pod.

The client library reads both, with all ways to prove who one is (certificates, tokens, plugins
that are programs). It is an extra, and loads longer than most commands take: it is imported when
the first call is made. What it finds becomes an Entrance: an address, TLS, and a header.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import pathlib
import ssl
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from anubis.domain.errors import EngineUnavailable

ACCOUNT = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where every pod finds what it needs to talk to its cluster."""

PLUGIN_SECONDS = 60.0
"""Plugins of clouds ask the cloud; one that waits for a person at a keyboard gets nobody."""

MISSING = (
    "the kubernetes engine needs a library that is not installed: "
    "pip install 'anubis[kubernetes]', or make extras in a clone"
)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """Which cluster, and which part of it."""

    kubeconfig: str | None = None
    """Path of the kubeconfig; several with ``:`` between them; None: we run in the cluster."""

    context: str = ""  #: of the kubeconfig; empty: its current one
    namespace: str = ""  #: empty: of the context, of our own pod, or ``default``

    @property
    def words(self) -> str:
        """Where the access comes from, for people who look for a mistake in it."""
        if self.kubeconfig is None:
            return "the service account of this pod"
        chosen = f"context {self.context}" if self.context else "the current context"
        return f"{chosen} of {self.kubeconfig}"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Entrance:
    """An open way into a cluster."""

    server: str  #: ``https://host:port``, without anything secret
    namespace: str
    tls: ssl.SSLContext
    tls_name: str | None  #: whom the certificate must name, where that is not the host
    proxy: str | None
    authorization: Callable[[], Awaitable[str]]
    """The header that says who we are, renewed where it runs out; empty: the certificate does."""


async def enter(access: Access) -> Entrance:
    """Read the access. Says nothing about whether anybody answers there."""
    try:
        from kubernetes_asyncio import client, config
    except ImportError as error:
        raise EngineUnavailable(MISSING) from error
    found = client.Configuration()
    try:
        async with asyncio.timeout(PLUGIN_SECONDS):
            context_namespace = await _read(access, found, config)
        return _entrance(access, found, context_namespace)
    except TimeoutError as error:
        raise _unusable(access, f"no credentials within {PLUGIN_SECONDS:g} s") from error
    # The library raises whatever its parser, a plugin or a certificate trips over; each is
    # something about the access that only its owner can mend.
    except Exception as error:
        raise _unusable(access, _why(error)) from error
    finally:
        _forget_files()


async def _read(access: Access, found: Any, config: Any) -> str:
    if access.kubeconfig is None:
        config.load_incluster_config(
            client_configuration=found,
            token_filename=str(ACCOUNT / "token"),
            cert_filename=str(ACCOUNT / "ca.crt"),
        )
        return (ACCOUNT / "namespace").read_text().strip()
    loader = await config.load_kube_config(
        config_file=access.kubeconfig,
        context=access.context or None,
        client_configuration=found,
        persist_config=False,  # the file is the user's
    )
    found.refresh_api_key_hook = _renewing(loader)
    return str((loader.current_context or {}).get("context", {}).get("namespace") or "")


def _renewing(loader: Any) -> Callable[[Any], Awaitable[None]]:
    """Ask the plugin again when what it gave has run out: the library does so only in tasks."""

    async def renew(configuration: Any) -> None:
        if not hasattr(loader, "exec_plugin_expiry"):
            return
        async with asyncio.timeout(PLUGIN_SECONDS):
            await loader.load_from_exec_plugin()  # gives what it has, unless that has run out
        configuration.api_key["BearerToken"] = loader.token

    return renew


def _entrance(access: Access, found: Any, context_namespace: str) -> Entrance:
    async def authorization() -> str:
        if "BearerToken" not in found.api_key:
            return ""
        # Files of tokens often end with a new line, which no header may have.
        return str(await found.get_api_key_with_prefix("BearerToken")).strip()

    address = urlsplit(found.host)
    host = address.netloc.rpartition("@")[2]
    if address.scheme not in ("http", "https") or not host:
        raise ValueError(f"found the server {found.host!r}, expected https://HOST:PORT")
    return Entrance(
        server=f"{address.scheme}://{host}{address.path.rstrip('/')}",
        namespace=access.namespace or context_namespace or "default",
        tls=_tls(found),
        tls_name=found.tls_server_name or None,
        proxy=found.proxy or None,
        authorization=authorization,
    )


def _tls(found: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=found.ssl_ca_cert)
    # Authorities that kubeadm makes lack an extension which Python 3.13 began to insist on; kubectl
    # never did. Who signed, and for which name, is verified all the same.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if found.cert_file:
        context.load_cert_chain(found.cert_file, keyfile=found.key_file)
    if not found.verify_ssl:  # the kubeconfig says so: insecure-skip-tls-verify
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _forget_files() -> None:
    """The library writes keys into temporary files, and deletes them only when it ends in peace."""
    with contextlib.suppress(ImportError, AttributeError):
        from kubernetes_asyncio.config import kube_config

        kube_config._cleanup_temp_files()


def _why(error: Exception) -> str:
    """What is wrong with the access. The library trips over what is no kubeconfig at all."""
    if isinstance(error, TypeError | AttributeError | AssertionError | UnicodeError):
        return "found something else, expected a kubeconfig"
    if isinstance(error, ssl.SSLError):
        return f"its certificate, its key or its authority is none ({error})"
    return f"{type(error).__name__}: {error}"


def _unusable(access: Access, why: str) -> EngineUnavailable:
    return EngineUnavailable(
        f"the access to a Kubernetes cluster ({access.words}) cannot be used: {why}; "
        "see that `kubectl get pods` works with it, or set ANUBIS_KUBERNETES_CONTEXT"
    )
