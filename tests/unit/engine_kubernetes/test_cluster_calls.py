"""Calls to a cluster whose API is busy, away, unwilling, or no API at all."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pathlib
import socket
import time
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from tests import kubernetes_api
from tests.kubernetes_api import TOKEN, Api, refused

from anubis.adapters.engine.kubernetes import calling, kinds, refusals
from anubis.adapters.engine.kubernetes.access import Access
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.domain.errors import EngineUnavailable

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}


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


def answering(api: Api, *answers: web.StreamResponse) -> None:
    """Give these answers in turn, the last one for ever."""
    left = list(answers)

    async def handle(request: web.Request) -> web.StreamResponse:
        return left.pop(0) if len(left) > 1 else _again(left[0])

    api.handle = handle


def _again(answer: web.StreamResponse) -> web.Response:
    assert isinstance(answer, web.Response)
    return web.Response(body=answer.body, status=answer.status, headers=answer.headers.copy())


async def test_an_object_is_applied_by_the_server_under_our_name(
    api: Api, cluster: Cluster
) -> None:
    answering(api, web.json_response(CONFIG, status=201), web.json_response(CONFIG))
    owner = kinds.Owner(kind=kinds.JOB, name="j", uid="u")

    first = await cluster.apply(CONFIG, owner=owner)
    second = await cluster.apply(CONFIG, dry_run=True)

    assert first.created
    assert not second.created
    asked = api.asked[0]
    assert (asked.method, asked.path) == ("PATCH", "/api/v1/namespaces/ours/configmaps/x")
    assert asked.headers["Content-Type"] == "application/apply-patch+yaml"
    assert asked.headers["Authorization"] == f"Bearer {TOKEN}"
    wanted = {"fieldManager": "anubis", "force": "true", "fieldValidation": "Strict"}
    assert dict(asked.query) == wanted
    assert dict(api.asked[1].query) == {**wanted, "dryRun": "All"}
    assert json.loads(api.bodies[0])["metadata"]["ownerReferences"] == [owner.reference()]
    assert json.loads(api.bodies[1]) == CONFIG
    assert cluster.calls == {("apply", "ConfigMap"): 2}


async def test_who_is_sent_away_comes_back_when_told(api: Api, cluster: Cluster) -> None:
    busy = refused(429, "TooManyRequests", "busy", Retry_After="0")
    answering(api, busy, _again(busy), web.json_response(CONFIG))

    assert await cluster.get(kinds.CONFIG_MAP, "x") == CONFIG
    assert len(api.asked) == 3


async def test_a_server_that_stays_busy_is_not_waited_for_for_ever(
    api: Api, cluster: Cluster
) -> None:
    answering(api, refused(429, "TooManyRequests", "come later", Retry_After="3600"))

    with pytest.raises(EngineUnavailable, match=r"cannot answer now \(HTTP 429\): come later"):
        await cluster.get(kinds.CONFIG_MAP, "x")
    assert len(api.asked) == 1


async def test_trouble_inside_the_server_is_told_in_its_words(api: Api, cluster: Cluster) -> None:
    answering(api, refused(500, "InternalError", "etcdserver: request timed out"))

    with pytest.raises(EngineUnavailable, match="etcdserver: request timed out") as caught:
        await cluster.list(kinds.POD)
    assert not isinstance(caught.value, refusals.Refused)
    assert api.address in str(caught.value)


async def test_an_unknown_field_is_the_fault_of_the_object(api: Api, cluster: Cluster) -> None:
    words = (
        "failed to create typed patch object (/x; /v1, Kind=ConfigMap): .foo: field not declared"
    )
    answering(api, refused(500, "", words))

    with pytest.raises(refusals.Refused, match="field not declared") as caught:
        await cluster.apply(CONFIG)
    assert caught.value.status == 422


async def test_a_cluster_that_is_not_there_is_named_without_secrets(
    tmp_path: pathlib.Path,
) -> None:
    path = kubernetes_api.kubeconfig(tmp_path / "config", "http://user:secret@127.0.0.1:1")
    cluster = Cluster(Access(kubeconfig=path, context="k"))

    with pytest.raises(EngineUnavailable) as caught:
        await cluster.version()
    await cluster.close()
    words = str(caught.value)
    assert f"http://127.0.0.1:1 (context k of {path}) does not answer" in words
    assert "secret" not in words
    assert TOKEN not in words


async def test_no_call_waits_for_ever(
    api: Api, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "CALL_SECONDS", 0.2)
    leave = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        await leave.wait()
        return web.Response()

    api.handle = silent
    with pytest.raises(EngineUnavailable, match=r"no answer within 0\.2 s"):
        await cluster.get(kinds.POD, "x")
    leave.set()


async def test_who_is_told_to_stop_just_when_its_call_takes_too_long_stops(
    api: Api, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "CALL_SECONDS", 0.2)
    leave = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        await leave.wait()
        return web.Response()

    async def ask_again_and_again() -> None:
        while True:
            with contextlib.suppress(EngineUnavailable):
                await cluster.get(kinds.POD, "x")
            await asyncio.sleep(3600)

    api.handle = silent
    await cluster.connect()
    # Both have waited too long when the loop gets to look at the time.
    asyncio.get_running_loop().call_later(0.1, time.sleep, 0.3)
    other = asyncio.create_task(ask_again_and_again())
    with pytest.raises(EngineUnavailable):
        await cluster.get(kinds.POD, "x")
    other.cancel()
    done, _ = await asyncio.wait([other], timeout=5)
    leave.set()
    other.cancel()
    assert done


async def test_a_server_that_takes_no_connection_is_told_from_one_that_is_slow(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # says nothing, least of all of TLS
        address = f"https://127.0.0.1:{deaf.getsockname()[1]}"
        path = kubernetes_api.kubeconfig(tmp_path / "config", address)
        cluster = Cluster(Access(kubeconfig=path))
        with pytest.raises(EngineUnavailable, match=r"no connection within 0\.2 s"):
            await cluster.version()
        await cluster.close()


async def test_a_missing_right_is_named(api: Api, cluster: Cluster) -> None:
    words = (
        'jobs.batch is forbidden: User "anubis" cannot create resource "jobs" in API group '
        '"batch" in the namespace "ours"'
    )
    answering(api, refused(403, "Forbidden", words))

    with pytest.raises(refusals.NotPermitted, match="does not permit us to create jobs") as caught:
        await cluster.get(kinds.JOB, "x")
    assert (caught.value.verb, caught.value.resource) == ("create", "jobs")


async def test_who_shows_nothing_is_told_to_show_something(api: Api, cluster: Cluster) -> None:
    words = 'forbidden: User "system:anonymous" cannot get path "/apis/kubeflow.org/v2beta1"'
    answering(api, refused(403, "Forbidden", words))

    with pytest.raises(EngineUnavailable, match=r"does not know us .*: renew the credentials"):
        await cluster.has_api("kubeflow.org/v2beta1", "mpijobs")


@pytest.mark.parametrize(
    ("words", "is_quota"),
    [
        ('pods "x" is forbidden: exceeded quota: compute, requested: cpu=8, used: 0', True),
        ('admission webhook "policy.example" denied the request: no latest tags', False),
    ],
)
async def test_what_a_policy_forbids_is_refused_in_its_words(
    api: Api, cluster: Cluster, words: str, *, is_quota: bool
) -> None:
    answering(api, refused(403, "Forbidden", words))

    with pytest.raises(refusals.Refused) as caught:
        await cluster.apply(CONFIG)
    assert str(caught.value) == words
    assert caught.value.is_quota is is_quota


async def test_credentials_that_are_not_accepted_are_read_anew(
    api: Api, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "RENEW_SECONDS", 0)
    token = tmp_path / "token"
    token.write_text("old\n")
    path = kubernetes_api.kubeconfig(tmp_path / "config", api.address, tokenFile=str(token))
    cluster = Cluster(Access(kubeconfig=path))

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"] != "Bearer new":
            return refused(401, "Unauthorized", "Unauthorized")
        return web.json_response(CONFIG)

    api.handle = handle
    with pytest.raises(EngineUnavailable, match="does not know us"):
        await cluster.get(kinds.CONFIG_MAP, "x")
    token.write_text("new\n")
    assert await cluster.get(kinds.CONFIG_MAP, "x") == CONFIG
    await cluster.close()


async def test_a_connection_that_is_cut_is_tried_once_more_unless_that_could_do_it_twice(
    api: Api, cluster: Cluster
) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        if len(api.asked) == 1:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(CONFIG)

    api.handle = cut
    assert (await cluster.apply(CONFIG)).object == CONFIG
    assert len(api.asked) == 2

    api.asked.clear()
    with pytest.raises(EngineUnavailable, match="does not answer"):
        await cluster.create(CONFIG)
    assert len(api.asked) == 1


async def test_a_long_list_comes_in_pages(api: Api, cluster: Cluster) -> None:
    one, two = kubernetes_api.pod("one", 1), kubernetes_api.pod("two", 2)
    answering(
        api,
        kubernetes_api.listing(7, one, more="next"),
        kubernetes_api.listing(7, two),
    )

    found = await cluster.list(kinds.POD, "a=b")

    assert [item["metadata"]["name"] for item in found.items] == ["one", "two"]
    assert found.version == "7"
    assert dict(api.asked[1].query) == {"labelSelector": "a=b", "limit": "500", "continue": "next"}


async def test_a_list_whose_beginning_was_forgotten_is_asked_for_at_once(
    api: Api, cluster: Cluster
) -> None:
    one = kubernetes_api.pod("one", 1)
    answering(
        api,
        kubernetes_api.listing(7, one, more="next"),
        refused(410, "Expired", "The provided continue parameter is too old"),
        kubernetes_api.listing(9, one),
    )

    assert (await cluster.list(kinds.POD)).version == "9"
    assert "limit" not in api.asked[2].query


async def test_a_proxy_that_answers_with_a_page_is_told_from_a_cluster(
    api: Api, cluster: Cluster
) -> None:
    answering(api, web.Response(text="<html>please log in</html>"))

    with pytest.raises(EngineUnavailable, match="no Kubernetes API, it says: '<html>please log in"):
        await cluster.version()


async def test_what_is_gone_is_none_and_deleting_it_again_is_no_error(
    api: Api, cluster: Cluster
) -> None:
    assert await cluster.get(kinds.JOB, "x") is None
    assert not await cluster.delete(kinds.JOB, "x", grace=0, propagation="Foreground", uid="u")
    assert not await cluster.adopt(
        kinds.SECRET, "x", kinds.Owner(kind=kinds.JOB, name="j", uid="u")
    )
    assert json.loads(api.bodies[1]) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"},
    }


async def test_a_name_cannot_leave_its_place_in_an_address(api: Api, cluster: Cluster) -> None:
    await cluster.get(kinds.POD, "../secrets/x?a=b")

    [asked] = api.asked
    assert asked.raw_path == "/api/v1/namespaces/ours/pods/..%2Fsecrets%2Fx%3Fa=b"


async def test_whether_a_kind_is_known_is_asked_once(api: Api, cluster: Cluster) -> None:
    answering(api, web.json_response({"resources": [{"name": "mpijobs"}]}))

    assert await cluster.has_api("kubeflow.org/v2beta1", "mpijobs")
    assert await cluster.has_api("kubeflow.org/v2beta1", "mpijobs")
    assert [one.path for one in api.asked] == ["/apis/kubeflow.org/v2beta1"]


async def test_many_calls_share_few_connections(api: Api, cluster: Cluster) -> None:
    connections: set[object] = set()

    async def handle(request: web.Request) -> web.StreamResponse:
        connections.add(request.transport)
        await asyncio.sleep(0)
        return web.json_response(CONFIG)

    api.handle = handle
    await asyncio.gather(*(cluster.get(kinds.CONFIG_MAP, "x") for _ in range(300)))

    assert len(api.asked) == 300
    assert len(connections) <= calling.AT_ONCE
