"""One kubelet for all nodes on paper: has pods run to their end, and streams their journals.

It does what a real one does at the API server: says step by step how far a pod is, and deletes for
good what somebody deleted. Its own server answers ``exec`` of the command with which the engine
fetches a journal, through the API server and with the same protocol as a real one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any

from aiohttp import WSMsgType, web

from anubis.adapters.engine.kubernetes import executing, kinds, refusals
from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.calling import Asked, Calling
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.domain.errors import EngineUnavailable
from bench.kubernetes.paper_pod import Journal, PaperPod, Step

SECONDS = {Step.PREPARING: 0.1, Step.RECORDING: 0.4, Step.RUNNING: 1.0}
"""How long each step lasts: about what a node with room and the image needs, and a short program.
"""

WATCH_SECONDS = 300


class PaperKubelet:
    """``follow`` the pods of a namespace; ``exec`` is a handler for a web server."""

    def __init__(self, access: Access, namespace: str) -> None:
        self._cluster = Cluster(access)
        self._calling = Calling(access)
        self._namespace = namespace
        self._pods: dict[str, PaperPod] = {}  #: by name
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Leave."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._cluster.close()
        await self._calling.close()

    async def follow(self, nodes: frozenset[str]) -> None:
        """Care for pods that the scheduler gives to these nodes, until canceled."""
        while True:
            try:
                listing = await self._cluster.list(kinds.POD)
                for found in listing.items:
                    self._look(found, nodes)
                await self._watch(listing.version, nodes)
            except EngineUnavailable as error:
                print(f"paper kubelet: {error}", flush=True)
                await asyncio.sleep(1)

    async def _watch(self, version: str, nodes: frozenset[str]) -> None:
        async with self._cluster.watching(kinds.POD, "", version, WATCH_SECONDS) as changes:
            async for change in changes:
                if change["type"] in ("ADDED", "MODIFIED"):
                    self._look(change["object"], nodes)
                elif change["type"] == "DELETED":
                    self._forget(str(change["object"]["metadata"]["name"]))
                elif change["type"] == "ERROR":
                    return

    def _look(self, found: Mapping[str, Any], nodes: frozenset[str]) -> None:
        if found["spec"].get("nodeName") not in nodes:
            return
        name = str(found["metadata"]["name"])
        pod = self._pods.get(name)
        if pod is None:
            pod = self._pods[name] = PaperPod(found)
            self._do(self._live(pod))
        if found["metadata"].get("deletionTimestamp") and not pod.journal.is_closed:
            pod.journal.close()
            self._do(self._bury(pod))

    def _forget(self, name: str) -> None:
        if (pod := self._pods.pop(name, None)) is not None:
            pod.journal.close()

    def _do(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _live(self, pod: PaperPod) -> None:
        for step in (Step.PREPARING, Step.RECORDING, Step.RUNNING, Step.ENDED):
            if pod.journal.is_closed:
                return
            await self._say(pod, step)
            pod.record(step)
            await asyncio.sleep(SECONDS.get(step, 0))

    async def _bury(self, pod: PaperPod) -> None:
        await self._say(pod, Step.OVER)
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}}
        await self._call("DELETE", pod.name, body)

    async def _say(self, pod: PaperPod, step: Step) -> None:
        body = {"metadata": {"uid": pod.uid}, "status": pod.status(step)}
        await self._call("PATCH", pod.name, body, part="status")

    async def _call(
        self, method: str, name: str, body: Mapping[str, object], *, part: str = ""
    ) -> None:
        """Whatever it comes to: a pod may be gone, or another one of its name be there."""
        patch = "application/strategic-merge-patch+json"
        asked = Asked(
            verb=method.lower(),
            kind="Pod",
            method=method,
            path=kinds.POD.path(self._namespace, name, part),
            body=body,
            content_type=patch if method == "PATCH" else "application/json",
        )
        answer = await self._calling.call(asked)
        if answer.status >= 300 and answer.status not in (404, 409, 422):
            words = refusals.told(answer.body)
            print(f"paper kubelet: {method} {name}: {answer.status} {words}", flush=True)

    async def exec(self, request: web.Request) -> web.WebSocketResponse:
        """``tail -c +N -f JOURNAL`` in a recorder, or ``touch`` of what lets it go."""
        pod = self._pods.get(request.match_info["pod"])
        command = request.query.getall("command", [])
        if pod is None or command[0] not in ("tail", "touch"):
            raise web.HTTPNotFound(text=f"nothing to execute on paper: {' '.join(command)}")
        stream = web.WebSocketResponse(protocols=(executing.PROTOCOL,))
        await stream.prepare(request)
        if command[0] == "touch":
            self._do(self._say(pod, Step.OVER))
            await _end(stream, {"status": "Success"})
            return stream
        sending = asyncio.create_task(_send(stream, pod.journal, int(command[2]) - 1))
        async for message in stream:
            if message.type is WSMsgType.ERROR:
                break
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        return stream


async def _end(stream: web.WebSocketResponse, status: Mapping[str, object]) -> None:
    """Say how a command ended."""
    await stream.send_bytes(bytes([executing.STATUS]) + json.dumps(status).encode())
    await stream.close()


async def _send(stream: web.WebSocketResponse, journal: Journal, position: int) -> None:
    """Send what there is from a position on, and what comes, while its container is there."""
    with contextlib.suppress(ConnectionError):
        while True:
            grown = journal.next()
            if piece := journal.content[position:]:
                await stream.send_bytes(bytes([executing.STDOUT]) + piece)
                position += len(piece)
            elif journal.is_closed:
                killed = {"reason": "ExitCode", "message": "137"}
                await _end(stream, {"status": "Failure", "details": {"causes": [killed]}})
                return
            else:
                await grown.wait()
