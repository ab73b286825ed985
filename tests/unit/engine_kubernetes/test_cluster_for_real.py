"""The border to clusters, held against a real one: through a way to it that is cut."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from tests import real_parts
from tests.tcp_proxy import Proxy

from anubis.adapters.engine.kubernetes import cluster as clusters
from anubis.adapters.engine.kubernetes import kinds, refusals
from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.following import Rhythm, State, Watch
from anubis.adapters.engine.kubernetes.lease import Leadership, Terms
from anubis.adapters.engine.kubernetes.naming import RUN
from anubis.domain.errors import EngineUnavailable

pytestmark = pytest.mark.cluster

KUBECONFIG = os.environ.get(
    "ANUBIS_TEST_KUBECONFIG", str(pathlib.Path("~/.cache/anubis-cluster/kubeconfig").expanduser())
)
LABELS = {"test": "border", RUN: "r1"}
SELECTOR = "test=border"


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """The cluster, in a namespace of our own."""
    real_parts.need(pathlib.Path(KUBECONFIG).is_file(), "there is no test cluster: make cluster")
    namespace = f"border-{secrets.token_hex(4)}"
    made = Cluster(Access(kubeconfig=KUBECONFIG, namespace=namespace))
    await made.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    try:
        yield made
    finally:
        await made.delete(kinds.NAMESPACE, namespace)
        await made.close()


@pytest.fixture
async def proxy(cluster: Cluster) -> AsyncIterator[Proxy]:
    server = urlsplit(cluster.server)
    assert server.hostname is not None
    async with Proxy(server.hostname, server.port or 443).serving() as serving:
        yield serving


@pytest.fixture
async def through_proxy(
    cluster: Cluster, proxy: Proxy, tmp_path: pathlib.Path
) -> AsyncIterator[Cluster]:
    """The same cluster, by a way that can be cut."""
    content = yaml.safe_load(pathlib.Path(KUBECONFIG).read_text())
    for one in content["clusters"]:
        one["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
    path = tmp_path / "config"
    path.write_text(json.dumps(content))
    made = Cluster(Access(kubeconfig=str(path), namespace=cluster.namespace))
    yield made
    await made.close()


def config(name: str, **data: str) -> dict[str, object]:
    metadata = {"name": name, "labels": LABELS}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def running_pod(cluster: Cluster) -> str:
    container = {
        "name": "c",
        "image": real_parts.busybox(),
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", "echo hello; sleep 600"],
    }
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
    }
    await _applied(cluster, pod)
    async with asyncio.timeout(120):
        while True:
            found = await cluster.get(kinds.POD, "p")
            assert found is not None
            if found["status"].get("phase") == "Running":
                return str(found["metadata"]["uid"])
            await asyncio.sleep(0.2)


async def _applied(cluster: Cluster, pod: dict[str, Any]) -> None:
    """A new namespace takes no pods until its service account is there."""
    async with asyncio.timeout(60):
        while True:
            try:
                await cluster.apply(pod)
            except refusals.Refused as error:
                if "serviceaccount" not in str(error):
                    raise
            else:
                return
            await asyncio.sleep(0.1)


async def until(watch: Watch, holds: Callable[[State], object]) -> State:
    with watch.subscribe("r1") as subscription:
        async with asyncio.timeout(60):
            while not holds(state := watch.state("r1")):
                await subscription.changed(1)
    return state


def versions(state: State) -> dict[str, str]:
    return {one["metadata"]["name"]: one["data"]["v"] for one in state.objects}


async def test_objects_are_applied_listed_and_deleted(cluster: Cluster) -> None:
    assert (await cluster.apply(config("one", v="0"), dry_run=True)).created
    assert await cluster.get(kinds.CONFIG_MAP, "one") is None
    assert (await cluster.apply(config("one", v="1"))).created
    again = await cluster.apply(config("one", v="2"))
    assert not again.created
    assert again.object["data"] == {"v": "2"}

    owner = kinds.Owner(kind=kinds.CONFIG_MAP, name="one", uid=str(again.object["metadata"]["uid"]))
    owned = await cluster.apply(config("two", v="1"), owner=owner)
    assert owned.object["metadata"]["ownerReferences"][0]["name"] == "one"
    await cluster.apply(config("three", v="1"))
    assert await cluster.adopt(kinds.CONFIG_MAP, "three", owner)

    found = await cluster.list(kinds.CONFIG_MAP, SELECTOR)
    assert {one["metadata"]["name"] for one in found.items} == {"one", "two", "three"}
    with pytest.raises(refusals.Refused) as caught:
        await cluster.delete(kinds.CONFIG_MAP, "one", uid="another")
    assert caught.value.status == 409
    assert await cluster.delete(kinds.CONFIG_MAP, "one")
    assert not await cluster.delete(kinds.CONFIG_MAP, "one")
    for name in ("two", "three"):  # the cluster may have collected them already
        await cluster.delete(kinds.CONFIG_MAP, name)
    assert not (await cluster.list(kinds.CONFIG_MAP, SELECTOR)).items


async def test_wrong_objects_are_refused_in_the_clusters_words(cluster: Cluster) -> None:
    with pytest.raises(refusals.Refused, match="field not declared in schema") as caught:
        await cluster.apply({**config("one"), "nonsense": 1})
    assert caught.value.status == 422

    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": {}}
    with pytest.raises(refusals.Refused, match="Required value") as caught:
        await cluster.apply(job)
    assert caught.value.reason == "Invalid"


async def test_who_we_are_and_may_be_is_told(cluster: Cluster) -> None:
    assert (await cluster.version()).version.startswith("v")
    assert await cluster.can_i("create", kinds.POD, "exec")
    assert await cluster.can_i("list", kinds.NODE)
    assert await cluster.has_api("batch/v1", "jobs")
    assert not await cluster.has_api("batch/v1", "nonsense")
    assert not await cluster.has_api("nobody.example.org/v1", "jobs")


async def test_a_long_list_comes_whole(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "PAGE", 3)
    wanted = {f"c{number}" for number in range(7)}
    await asyncio.gather(*(cluster.apply(config(name, v="1")) for name in wanted))

    found = await cluster.list(kinds.CONFIG_MAP, SELECTOR)

    assert {one["metadata"]["name"] for one in found.items} == wanted
    assert cluster.calls["list", "ConfigMap"] == 3


async def test_a_watch_finds_out_what_happened_while_its_way_was_cut(
    cluster: Cluster, through_proxy: Cluster, proxy: Proxy
) -> None:
    watch = Watch(through_proxy, kinds.CONFIG_MAP, SELECTOR)
    await cluster.apply(config("one", v="1"))
    with watch.subscribe("r1"):
        await until(watch, lambda state: state.objects)
        await cluster.apply(config("two", v="1"))
        await until(watch, lambda state: len(state.objects) == 2)

        proxy.is_open = False
        proxy.cut()
        await cluster.delete(kinds.CONFIG_MAP, "one")
        await cluster.apply(config("two", v="2"))
        await cluster.apply(config("three", v="1"))
        async with asyncio.timeout(60):
            while not watch.trouble:
                await asyncio.sleep(0.05)
        assert set(versions(watch.state("r1"))) == {"one", "two"}
        assert not watch.is_fresh

        proxy.is_open = True
        state = await until(watch, lambda state: state.gone and len(state.objects) == 2)
        assert versions(state) == {"two": "2", "three": "1"}
        assert [one["metadata"]["name"] for one in state.gone] == ["one"]
        assert watch.is_fresh
    await watch.close()


async def test_a_watch_goes_on_without_listing_when_a_connection_has_gone_dead(
    cluster: Cluster, through_proxy: Cluster, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "WATCH_GRACE_SECONDS", 0.5)
    watch = Watch(through_proxy, kinds.CONFIG_MAP, SELECTOR, rhythm=Rhythm(watch=2))
    await cluster.apply(config("one", v="1"))
    with watch.subscribe("r1"):
        await until(watch, lambda state: state.objects)
        proxy.go_dead()
        await cluster.apply(config("one", v="2"))
        state = await until(watch, lambda state: versions(state) == {"one": "2"})
    await watch.close()

    assert not state.gone
    assert through_proxy.calls["list", "ConfigMap"] == 1


async def test_commands_run_in_containers_until_their_stream_is_cut(
    cluster: Cluster, through_proxy: Cluster, proxy: Proxy
) -> None:
    uid = await running_pod(cluster)
    words = "head -c 3000000 /dev/zero; echo no >&2; exit 3"
    async with cluster.exec("p", "c", ["sh", "-c", words]) as output:
        size = sum([len(chunk) async for chunk in output])
    assert (size, output.exit_code, output.complaint) == (3_000_000, 3, "no")
    assert await cluster.log("p", "c", 3) == b"lo\n"
    told = await cluster.list(kinds.EVENT, fields=f"involvedObject.uid={uid}")
    assert "Scheduled" in {one["reason"] for one in told.items}

    async with through_proxy.exec("p", "c", ["sh", "-c", "echo one; sleep 600"]) as output:
        chunks = aiter(output)
        assert await anext(chunks) == b"one\n"
        proxy.cut()
        with pytest.raises(EngineUnavailable, match="broke"):
            await anext(chunks)

    with pytest.raises(refusals.Refused, match="not found"):
        await cluster.exec("nobody", "c", ["true"]).__aenter__()


async def test_a_silent_stream_is_kept_alive(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "HEARTBEAT_SECONDS", 0.2)
    await running_pod(cluster)
    async with cluster.exec("p", "c", ["sh", "-c", "sleep 2; echo one"]) as output:
        assert [chunk async for chunk in output] == [b"one\n"]
    assert output.exit_code == 0


async def test_one_leads_and_the_next_takes_over_when_it_is_cut_off(
    cluster: Cluster, through_proxy: Cluster, proxy: Proxy
) -> None:
    terms = Terms(duration=3.0, deadline=2.0, retry=0.2)
    one = Leadership(through_proxy, "leader", "one", terms=terms)
    two = Leadership(cluster, "leader", "two", terms=terms)
    async with one:
        waiting = asyncio.create_task(two.__aenter__())
        await asyncio.sleep(0.5)
        assert one.is_held
        assert not waiting.done()

        proxy.is_open = False
        proxy.cut()
        async with asyncio.timeout(60):
            await waiting
        assert not one.is_held
        assert one.lost.is_set()
        assert two.is_held
    await two.__aexit__(None, None, None)

    lease = await cluster.get(kinds.LEASE, "leader")
    assert lease is not None
    assert not lease["spec"].get("holderIdentity")
