"""Following a cluster that forgets, cuts connections, and comes back changed."""

from __future__ import annotations

import asyncio
import dataclasses
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest
from aiohttp import web
from tests import kubernetes_api
from tests.kubernetes_api import Api, listing, pod, refused, status, streamed

from anubis.adapters.engine.kubernetes import kinds
from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.following import Rhythm, State, Watch

QUICK = Rhythm(pause=0.01, longest_pause=0.02, short=0.0)


class Pods:
    """Pods of a cluster: lists give ``items``, watches the ``changes`` that a test puts in."""

    def __init__(self) -> None:
        self.version = 10
        self.items: list[Mapping[str, Any]] = []
        self.changes: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()
        self.instead: list[Callable[[web.Request], Awaitable[web.StreamResponse]]] = []
        """What is done with the next requests in place of what is usual."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.instead:
            return await self.instead.pop(0)(request)
        return await self.usual(request)

    async def usual(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return listing(self.version, *self.items)
        response = web.StreamResponse()
        await response.prepare(request)
        while (change := await self.changes.get()) is not None:
            await response.write(web.json_response(change).body + b"\n")  # type: ignore[operator]
        return response

    def tell(self, kind: str, found: Mapping[str, Any]) -> None:
        self.changes.put_nowait({"type": kind, "object": found})

    def cut(self) -> None:
        """End the watch that is open."""
        self.changes.put_nowait(None)


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with Api().serving() as serving:
        yield serving


@pytest.fixture
def pods(api: Api) -> Pods:
    made = Pods()
    api.handle = made.handle
    return made


@pytest.fixture
async def cluster(api: Api, pods: Pods, tmp_path: pathlib.Path) -> AsyncIterator[Cluster]:
    path = kubernetes_api.kubeconfig(tmp_path / "config", api.address)
    made = Cluster(Access(kubeconfig=path))
    yield made
    pods.cut()
    await made.close()


@pytest.fixture
async def watch(cluster: Cluster) -> AsyncIterator[Watch]:
    made = Watch(cluster, kinds.POD, "a=b", rhythm=QUICK)
    yield made
    await made.close()


async def until(watch: Watch, holds: Callable[[State], object], run: str = "r1") -> State:
    """Wait for the watch to know this."""
    with watch.subscribe(run) as subscription:
        async with asyncio.timeout(20):
            while not holds(state := watch.state(run)):
                await subscription.changed(0.1)
    return state


def names(state: State) -> set[str]:
    return {one["metadata"]["name"] for one in state.objects}


async def test_a_watch_begins_with_what_is_there_and_goes_on_from_there(
    api: Api, pods: Pods, watch: Watch
) -> None:
    pods.items = [pod("one", 3)]
    pods.tell("ADDED", pod("two", 11))
    pods.tell("MODIFIED", pod("one", 12, phase="Running"))

    state = await until(watch, lambda state: any(one["status"] for one in state.objects))

    assert names(state) == {"one", "two"}
    assert watch.is_fresh
    assert watch.listed_at is not None
    [asked] = api.asked_for(watch="true")
    assert asked.query["resourceVersion"] == "10"
    assert asked.query["allowWatchBookmarks"] == "true"
    assert asked.query["labelSelector"] == "a=b"
    assert 240 <= int(asked.query["timeoutSeconds"]) <= 360


async def test_a_watch_that_ends_goes_on_where_it_was(api: Api, pods: Pods, watch: Watch) -> None:
    pods.tell("ADDED", pod("one", 11))
    pods.tell("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "40"}})
    pods.cut()
    pods.tell("ADDED", pod("two", 41))

    state = await until(watch, lambda state: len(state.objects) == 2)

    assert names(state) == {"one", "two"}
    assert [one.query["resourceVersion"] for one in api.asked_for(watch="true")] == ["10", "40"]
    assert len(api.asked) == 3  # one list, two watches


async def test_a_connection_that_is_cut_in_the_middle_of_a_change_loses_nothing(
    api: Api, pods: Pods, watch: Watch
) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"type": "ADDED", "object": {"meta')
        assert request.transport is not None
        await asyncio.sleep(0.05)
        request.transport.abort()
        return response

    pods.instead = [pods.usual, cut]
    pods.tell("ADDED", pod("one", 11))

    await until(watch, lambda state: state.objects)

    assert [one.query["resourceVersion"] for one in api.asked_for(watch="true")] == ["10", "10"]


@pytest.mark.parametrize("is_event", [True, False])
async def test_what_changed_while_the_cluster_forgot_us_is_found_out(
    pods: Pods, watch: Watch, *, is_event: bool
) -> None:
    pods.items = [pod("same", 3), pod("changed", 4), pod("vanished", 5, phase="Running")]
    await until(watch, lambda state: len(state.objects) == 3)
    words = "too old resource version: 10 (50)"

    async def forgotten(request: web.Request) -> web.StreamResponse:
        pods.items = [pod("same", 3), pod("changed", 44, phase="Failed"), pod("new", 45)]
        pods.version = 50
        if is_event:
            gone = status(410, "Expired", words)
            return await streamed(request, [{"type": "ERROR", "object": gone}])
        return refused(410, "Expired", words)

    with watch.subscribe("r1"), watch.subscribe("r2") as other:
        await other.changed(0)  # that everything is known
        pods.instead = [forgotten]
        pods.cut()
        state = await until(watch, lambda state: state.gone)
        assert not await other.changed(0.05)

    assert names(state) == {"same", "changed", "new"}
    [gone] = state.gone
    assert gone["metadata"]["name"] == "vanished"
    assert gone["status"] == {"phase": "Running"}
    assert not watch.trouble


async def test_what_is_deleted_is_gone_as_it_was_last(pods: Pods, watch: Watch) -> None:
    pods.items = [pod("one", 3)]
    with watch.subscribe("r1"):
        await until(watch, lambda state: state.objects)
        pods.tell("DELETED", pod("one", 12, phase="Failed"))
        state = await until(watch, lambda state: state.gone)
        assert not state.objects
        assert state.gone[0]["status"] == {"phase": "Failed"}
    assert not watch.state("r1").gone  # nobody wants to know any more


async def test_a_change_wakes_those_who_listen_to_its_run_only(pods: Pods, watch: Watch) -> None:
    with watch.subscribe("r1") as one, watch.subscribe("r2") as two:
        assert await one.changed(20)
        assert await two.changed(20)  # that everything is known
        pods.tell("ADDED", pod("a", 11, run="r2"))
        assert await two.changed(20)
        assert not await one.changed(0.05)
        assert not await two.changed(0.05)


async def test_a_cluster_that_is_away_has_deleted_nothing(
    api: Api, pods: Pods, watch: Watch
) -> None:
    pods.items = [pod("one", 3)]
    await until(watch, lambda state: state.objects)

    async def away(request: web.Request) -> web.StreamResponse:
        return refused(503, "ServiceUnavailable", "the server is shutting down")

    with watch.subscribe("r1") as subscription:
        await subscription.changed(1)
        pods.instead = [away] * 1000
        pods.cut()
        async with asyncio.timeout(20):
            while not watch.trouble:
                await asyncio.sleep(0.01)
        assert not watch.is_fresh
        assert "the server is shutting down" in watch.trouble
        assert names(watch.state("r1")) == {"one"}
        assert not watch.state("r1").gone

        pods.instead = []
        pods.items, pods.version = [pod("one", 30, phase="Running")], 30  # if it lists
        pods.tell("MODIFIED", pods.items[0])  # if it goes on
        assert await subscription.changed(20)
    assert watch.state("r1").objects[0]["status"] == {"phase": "Running"}


async def test_a_cluster_that_does_not_know_our_moment_yet_is_listed_anew(
    api: Api, pods: Pods, watch: Watch
) -> None:
    async def restored(request: web.Request) -> web.StreamResponse:
        pods.items, pods.version = [pod("old", 2)], 5
        return refused(504, "Timeout", "Too large resource version: 10, current: 5")

    pods.items = [pod("one", 3)]
    with watch.subscribe("r1"):
        await until(watch, lambda state: state.objects)
        pods.instead = [restored] * 3
        pods.cut()
        state = await until(watch, lambda state: state.gone)
        pods.tell("ADDED", pod("new", 6))
        await until(watch, lambda state: len(state.objects) == 2)

    assert names(state) == {"old"}
    last = [one.query["resourceVersion"] for one in api.asked_for(watch="true")][-1]
    assert last == "5"


async def test_a_watch_that_never_hears_a_word_does_not_go_on_from_there(
    api: Api, pods: Pods, cluster: Cluster
) -> None:
    async def mute(request: web.Request) -> web.StreamResponse:
        pods.items, pods.version = [pod("old", 2)], 5  # the cluster was restored from a copy
        await asyncio.sleep(0.1)
        return await streamed(request, [])

    quick = dataclasses.replace(QUICK, silence=0.05)
    watch = Watch(cluster, kinds.POD, "a=b", rhythm=quick)
    pods.items = [pod("one", 3)]
    pods.instead = [pods.usual, mute]

    with watch.subscribe("r1"):
        state = await until(watch, lambda state: state.gone)
    await watch.close()

    assert names(state) == {"old"}


async def test_nonsense_on_the_wire_ends_no_watch(pods: Pods, watch: Watch) -> None:
    async def nonsense(request: web.Request) -> web.StreamResponse:
        return web.Response(text="<html>\n")

    async def strange(request: web.Request) -> web.StreamResponse:
        return await streamed(request, [{"type": "ADDED", "object": {}}])

    pods.instead = [nonsense, pods.usual, nonsense, strange]
    pods.items = [pod("one", 3)]

    await until(watch, lambda state: state.objects)
    pods.tell("ADDED", pod("two", 11))
    await until(watch, lambda state: len(state.objects) == 2)


async def test_watches_that_end_at_once_are_not_asked_for_in_a_storm(
    api: Api, pods: Pods, cluster: Cluster
) -> None:
    async def ends(request: web.Request) -> web.StreamResponse:
        return await streamed(request, [])

    slow = Watch(cluster, kinds.POD, "a=b", rhythm=Rhythm(pause=1000, longest_pause=1000))
    pods.instead = [pods.usual, *[ends] * 10]
    with slow.subscribe("r1"):
        async with asyncio.timeout(20):
            while not slow.trouble:
                await asyncio.sleep(0.01)
        assert "ends watches at once" in slow.trouble
    await slow.close()

    assert len(api.asked) == 2


async def test_nobody_listens_nobody_watches(api: Api, pods: Pods, cluster: Cluster) -> None:
    idle = Watch(cluster, kinds.POD, "a=b", rhythm=Rhythm(idle=0.05))
    pods.items = [pod("one", 3)]
    assert not api.asked

    await until(idle, lambda state: state.objects)
    async with asyncio.timeout(20):
        while idle.synced.is_set():
            await asyncio.sleep(0.01)
    assert not idle.state("r1").objects
    assert not idle.is_fresh

    await until(idle, lambda state: state.objects)  # and again, for the next run
    await idle.close()
    assert len([one for one in api.asked if "watch" not in one.query]) == 2


async def test_a_watch_is_shared_by_all_runs(api: Api, pods: Pods, watch: Watch) -> None:
    runs = [f"run-{number}" for number in range(200)]
    subscriptions = [watch.subscribe(run) for run in runs]
    for number, run in enumerate(runs):
        pods.tell("ADDED", pod(f"p{number}", 100 + number, run=run))

    for run in runs:
        await until(watch, lambda state: state.objects, run)
    for subscription in subscriptions:
        subscription.close()

    assert len(api.asked) == 2


def test_pauses_grow_to_a_limit_and_are_never_the_same_for_all() -> None:
    rhythm = Rhythm()
    for failures, longest in [(1, 0.2), (2, 0.4), (3, 0.8), (7, 10.0), (1000, 10.0)]:
        pauses = {rhythm.pause_after(failures) for _ in range(50)}
        assert all(longest / 2 <= pause <= longest for pause in pauses)
        assert len(pauses) > 1


async def test_what_nobody_reads_is_not_kept(pods: Pods, watch: Watch) -> None:
    whole = pod("one", 3)
    whole["metadata"] |= {
        "managedFields": [{"manager": "kubelet"}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"},
    }
    whole["spec"] |= {"volumes": [1], "nodeSelector": {"x": "y"}}
    pods.items = [whole]

    [kept] = (await until(watch, lambda state: state.objects)).objects

    assert kept["spec"] == {
        "nodeName": "n1",
        "nodeSelector": {"x": "y"},
        "containers": [{"name": "c", "image": "i"}],
    }
    assert kept["metadata"]["annotations"] == {"a": "b"}
    assert "managedFields" not in kept["metadata"]
