"""Commands in containers, over streams that break, and servers that open none."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pathlib
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from tests import kubernetes_api
from tests.kubernetes_api import Api, refused, status

from anubis.adapters.engine.kubernetes import refusals
from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.domain.errors import EngineUnavailable

SUCCESS = b"\x03" + json.dumps({"status": "Success"}).encode()
FAILURE = (
    b"\x03"
    + json.dumps(
        {
            "status": "Failure",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": "7"}]},
        }
    ).encode()
)


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with Api().serving() as serving:
        yield serving


@pytest.fixture
async def cluster(api: Api, tmp_path: pathlib.Path) -> AsyncIterator[Cluster]:
    path = kubernetes_api.kubeconfig(tmp_path / "config", api.address)
    made = Cluster(Access(kubeconfig=path))
    yield made
    await made.close()


def streaming(api: Api, *messages: bytes, is_cut: bool = False) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        for message in messages:
            await socket.send_bytes(message)
        if is_cut:
            assert request.transport is not None
            request.transport.close()
        else:
            await socket.close()
        return socket

    api.handle = handle


async def read(cluster: Cluster, got: list[bytes]) -> None:
    """Read a command's output to its end, or to where it breaks."""
    async with cluster.exec("p", "c", ["tail"]) as output:
        async for chunk in output:
            got.append(chunk)  # noqa: PERF401  what came before it broke counts


async def test_output_comes_in_order_and_complaints_apart(api: Api, cluster: Cluster) -> None:
    streaming(api, b"\x01", b"\x02oh ", b"\x01one", b"\x02no\n", b"\x01two", FAILURE)

    async with cluster.exec("p", "c", ["sh", "-c", "echo $A"]) as output:
        told = [chunk async for chunk in output]

    assert told == [b"one", b"two"]
    assert output.exit_code == 7
    assert output.complaint == "oh no"
    [asked] = api.asked
    assert asked.path == "/api/v1/namespaces/ours/pods/p/exec"
    assert asked.query.getall("command") == ["sh", "-c", "echo $A"]
    assert asked.headers["Authorization"] == f"Bearer {kubernetes_api.TOKEN}"


async def test_a_stream_that_ends_without_a_word_has_not_ended(api: Api, cluster: Cluster) -> None:
    for is_cut in (True, False):
        streaming(api, b"\x01one", is_cut=is_cut)
        got: list[bytes] = []
        with pytest.raises(EngineUnavailable, match="the stream from c of pod p broke"):
            await read(cluster, got)
        assert got == [b"one"]


async def test_a_command_that_cannot_be_started_is_refused_in_the_nodes_words(
    api: Api, cluster: Cluster
) -> None:
    words = status(500, "InternalError", 'exec: "nosuch": executable file not found in $PATH')
    streaming(api, b"\x03" + json.dumps(words).encode())

    with pytest.raises(refusals.Refused, match="executable file not found"):
        await read(cluster, [])


async def test_a_stream_that_is_not_opened_is_explained(api: Api, cluster: Cluster) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return refused(404, "NotFound", 'pods "p" not found')

    api.handle = handle
    with pytest.raises(refusals.Refused, match='pods "p" not found') as caught:
        async with cluster.exec("p", "c", ["true"]):
            pass
    assert caught.value.status == 404


async def test_the_right_to_a_stream_is_named_where_the_cluster_does_not(
    api: Api, cluster: Cluster
) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return refused(403, "Forbidden", 'pods "p" is forbidden: ')

    api.handle = handle
    with pytest.raises(refusals.NotPermitted, match="create pods/exec"):
        await read(cluster, [])


async def test_leaving_early_leaves_no_stream_open(api: Api, cluster: Cluster) -> None:
    closed: list[object] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        await socket.send_bytes(b"\x01one")
        closed.append((await socket.receive()).type)
        return socket

    api.handle = handle
    async with cluster.exec("p", "c", ["tail", "-f"]) as output:
        async for _ in output:
            break
    assert closed == [aiohttp.WSMsgType.CLOSE]


async def test_hundreds_of_streams_are_open_at_once_and_keep_no_call_waiting(
    api: Api, cluster: Cluster
) -> None:
    leave = asyncio.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        if "exec" not in request.path:
            return web.json_response({"gitVersion": "v1"})
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        await socket.send_bytes(b"\x01one")
        await leave.wait()
        return socket

    api.handle = handle
    async with contextlib.AsyncExitStack() as stack, asyncio.timeout(60):
        for _ in range(300):
            output = await stack.enter_async_context(cluster.exec("p", "c", ["tail", "-f"]))
            assert await anext(aiter(output)) == b"one"
        assert (await cluster.version()).version == "v1"
        leave.set()


async def test_the_end_of_a_log_is_kept(api: Api, cluster: Cluster) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"x" * 100_000 + b"the end")

    api.handle = handle
    assert await cluster.log("p", "c", 9) == b"xxthe end"
    assert api.asked[0].query["container"] == "c"


@pytest.mark.parametrize("code", [400, 404])
async def test_a_container_that_has_not_begun_has_no_log(
    api: Api, cluster: Cluster, code: int
) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return refused(code, "BadRequest", "container is waiting to start: ContainerCreating")

    api.handle = handle
    assert await cluster.log("p", "c", 9) == b""
