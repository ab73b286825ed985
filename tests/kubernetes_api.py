"""A server that speaks as much of Kubernetes' API as a test wants, and fails as the test says.

For what a real cluster cannot be made to do: to be busy, to forget, to cut connections at a chosen
moment, to answer with the page of a proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import pathlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
TOKEN = "a-token-that-nobody-may-see"


class Api:
    """The server. ``handle`` answers everything; a test puts in its own."""

    def __init__(self) -> None:
        self.asked: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.handle: Handler = _nothing
        self.address = ""

    @contextlib.asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[Api]:
        runner = web.AppRunner(self._application(), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        [(_, port), *_] = runner.addresses
        self.address = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        try:
            yield self
        finally:
            await runner.cleanup()

    def _application(self) -> web.Application:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._take)
        return application

    async def _take(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        self.bodies.append(await request.read())
        return await self.handle(request)

    def asked_for(self, **query: str) -> list[web.Request]:
        """The requests whose query has these words."""
        return [one for one in self.asked if query.items() <= dict(one.query).items()]


async def _nothing(request: web.Request) -> web.StreamResponse:
    return refused(404, "NotFound", f"{request.path} not found")


def refused(code: int, reason: str, message: str, **headers: str) -> web.Response:
    """An answer that is none, as Kubernetes gives it."""
    told = status(code, reason, message)
    return web.json_response(
        told, status=code, headers={k.replace("_", "-"): headers[k] for k in headers}
    )


def status(code: int, reason: str, message: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def pod(name: str, version: int, run: str = "r1", **status: Any) -> dict[str, Any]:
    """A pod of a run; its uid is made of its name."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "labels": {"anubis.dev/run": run},
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i", "env": [1]}]},
        "status": status,
    }


def listing(version: int, *items: Mapping[str, Any], more: str = "") -> web.Response:
    metadata = {"resourceVersion": str(version), **({"continue": more} if more else {})}
    return web.json_response({"kind": "List", "metadata": metadata, "items": list(items)})


async def streamed(
    request: web.Request, changes: Sequence[Mapping[str, Any]], *, hold: asyncio.Event | None = None
) -> web.StreamResponse:
    """A watch: these changes, then the end, or silence until ``hold`` is set."""
    response = web.StreamResponse()
    await response.prepare(request)
    for change in changes:
        await response.write(json.dumps(change).encode() + b"\n")
    if hold is not None:
        await hold.wait()
    return response


def kubeconfig(path: pathlib.Path, server: str, **user: object) -> str:
    """Write one; ``user``: how to say who one is."""
    ca = user.pop("ca", None)
    cluster = {"server": server, **({"certificate-authority": str(ca)} if ca else {})}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {"token": TOKEN}}],
        "contexts": [{"name": "k", "context": {"cluster": "c", "user": "u", "namespace": "ours"}}],
        "current-context": "k",
    }
    path.write_text(json.dumps(content))  # JSON is YAML
    return str(path)
