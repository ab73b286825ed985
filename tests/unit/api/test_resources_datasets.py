"""Datasets over HTTP: who may look, fetch, verify and evict, and what they are told."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from anubis.domain.access import Role
from anubis.domain.dataset import Checksum, Dataset, Reference
from anubis.domain.errors import DatasetInvalid
from anubis.entrypoints.api.resources import datasets
from anubis.runtime import caretaking
from anubis.testing.datasets import SIZE, PlayedCache

if TYPE_CHECKING:
    from tests.unit.api.conftest import World
else:
    World = Any

SECRET = "https://data.example/set.tgz?signature=x"
SHOWN = "https://data.example/set.tgz?…"
SOON = 5.0


def cache_of(world: World) -> PlayedCache:
    cache = world.service.application.open_datasets()
    assert isinstance(cache, PlayedCache)
    return cache


def some_held(world: World, count: int) -> list[Dataset]:
    """Datasets fetched a minute apart, the oldest first."""
    return [
        cache_of(world).hold(
            Reference(uri=f"s3://bucket/{number}"),
            fetched_at=world.clock.now() + timedelta(minutes=number),
        )
        for number in range(count)
    ]


async def until(ada: httpx.AsyncClient, key: str, state: str) -> dict[str, Any]:
    async with asyncio.timeout(SOON):
        while True:
            fetch: dict[str, Any] = (await ada.get(f"/datasets/{key}/fetch")).json()
            if fetch["state"] == state:
                return fetch
            await asyncio.sleep(0.01)


async def test_a_dataset_is_told_without_secrets_and_without_its_place(
    world: World, ada: httpx.AsyncClient
) -> None:
    reference = Reference(uri=SECRET, checksum=Checksum(algorithm="md5", digest="0" * 32))
    found = cache_of(world).hold(reference)

    answer = await ada.get(f"/datasets/{found.key[:8]}")

    shape = answer.json()
    assert shape["key"] == found.key
    assert shape["uri"] == SHOWN
    assert shape["checksum"] == f"md5:{'0' * 32}"
    assert shape["path"] is None
    assert "signature" not in answer.text


async def test_a_dataset_that_has_not_changed_is_not_sent_again(
    world: World, ada: httpx.AsyncClient
) -> None:
    [found] = some_held(world, 1)
    tag = (await ada.get(f"/datasets/{found.key}")).headers["ETag"]
    asking = {"If-None-Match": tag}

    assert (await ada.get(f"/datasets/{found.key}", headers=asking)).status_code == 304
    cache_of(world).hold(found.reference, used_at=world.clock.now() + timedelta(hours=1))
    assert (await ada.get(f"/datasets/{found.key}", headers=asking)).status_code == 200


async def test_datasets_are_listed_in_pages_that_use_does_not_shift(
    world: World, ada: httpx.AsyncClient
) -> None:
    held = some_held(world, 5)
    first = (await ada.get("/datasets", params={"limit": 2})).json()
    oldest = held[0]
    cache_of(world).hold(
        oldest.reference,
        fetched_at=oldest.fetched_at,
        used_at=world.clock.now() + timedelta(hours=1),
    )
    seen = [one["key"] for one in first["datasets"]]
    cursor = first["next"]
    while cursor is not None:
        page = (await ada.get("/datasets", params={"limit": 2, "cursor": cursor})).json()
        seen += [one["key"] for one in page["datasets"]]
        cursor = page["next"]

    assert seen == [one.key for one in reversed(held)]


@pytest.mark.parametrize("cursor", ["x", "1.2", f"{10**18}.{'0' * 64}", f"-1.{'0' * 64}"])
async def test_a_cursor_that_nobody_gave_is_refused(ada: httpx.AsyncClient, cursor: str) -> None:
    assert (await ada.get("/datasets", params={"cursor": cursor})).status_code == 422


async def test_a_transfer_is_begun_looked_at_and_done(world: World, ada: httpx.AsyncClient) -> None:
    cache_of(world).gate.clear()
    begun = await ada.post("/datasets", json={"uri": SECRET})
    assert begun.status_code == 202
    assert begun.json()["uri"] == SHOWN
    key = begun.json()["key"]
    assert begun.headers["Location"] == f"/api/v1/datasets/{key}/fetch"
    half = (await ada.get(f"/datasets/{key}/fetch")).json()
    assert (half["state"], half["done_bytes"], half["total_bytes"]) == ("fetching", SIZE // 2, SIZE)
    assert (await ada.get(f"/datasets/{key}")).status_code == 404

    cache_of(world).gate.set()
    done = await until(ada, key, "done")

    assert done["ended_at"] is not None
    assert (await ada.get(f"/datasets/{key}")).json()["key"] == key
    assert (await ada.post("/datasets", json={"uri": SECRET})).status_code == 200
    assert await world.record() == [("ada", "dataset.fetch", key, True)] * 2
    assert "signature" not in str(await world.service.access.audit())


async def test_a_transfer_that_fails_says_so_in_its_body(
    world: World, ada: httpx.AsyncClient
) -> None:
    cache_of(world).error = DatasetInvalid("expected md5 1, found 2")

    answer = await ada.post("/datasets", json={"uri": "s3://bucket/x", "checksum": "0" * 32})

    failed = await until(ada, answer.json()["key"], "failed")
    assert failed["problem"] == {
        "type": "urn:anubis:dataset-invalid",
        "detail": "expected md5 1, found 2",
    }


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "uri"),
        ({"uri": "relative/path"}, "body.uri"),
        ({"uri": "s3://bucket/\n"}, "body.uri"),
        ({"uri": "s3:" + "x" * 5000}, "body.uri"),
        ({"uri": "https://ada:secret@b/x"}, "has a password in it"),
        ({"uri": "s3://b/x", "checksum": "crc32:00"}, "found the algorithm 'crc32'"),
        ({"uri": "s3://b/x", "checksum": "abc"}, "expected 32 hex digits"),
        ({"uri": "s3://b/x", "unpack": "yes"}, "body.unpack"),
        ({"uri": "s3://b/x", "path": "/etc"}, "body.path"),
    ],
)
async def test_a_wish_that_makes_no_sense_is_refused_at_once(
    world: World, ada: httpx.AsyncClient, body: dict[str, object], said: str
) -> None:
    answer = await ada.post("/datasets", json=body)

    assert answer.status_code == 422
    assert said in answer.json()["detail"]
    assert "secret" not in answer.text
    assert cache_of(world).asked == []


async def test_too_many_transfers_are_refused(
    world: World, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caretaking, "MOST", 1)
    cache_of(world).gate.clear()
    begun = await ada.post("/datasets", json={"uri": "s3://bucket/1"})

    assert (await ada.post("/datasets", json={"uri": "s3://bucket/2"})).status_code == 429

    assert (await ada.delete(f"/datasets/{begun.json()['key']}/fetch")).status_code == 202


async def test_a_transfer_is_stopped_once(world: World, ada: httpx.AsyncClient) -> None:
    cache_of(world).gate.clear()
    key = (await ada.post("/datasets", json={"uri": SECRET})).json()["key"]

    stopped = await ada.delete(f"/datasets/{key}/fetch")

    assert (stopped.status_code, stopped.json()["state"]) == (202, "canceled")
    assert (await ada.delete(f"/datasets/{key}/fetch")).status_code == 409
    assert (await ada.delete(f"/datasets/{'0' * 64}/fetch")).status_code == 404


async def test_a_damaged_dataset_is_found_and_gone(world: World, ada: httpx.AsyncClient) -> None:
    sound, damaged = some_held(world, 2)
    cache_of(world).damaged.add(damaged.key)

    good = await ada.post(f"/datasets/{sound.key}/verify")
    bad = await ada.post(f"/datasets/{damaged.key}/verify")

    assert good.json() == {"key": sound.key, "sound": True}
    assert bad.json() == {"key": damaged.key, "sound": False}
    assert (await ada.get(f"/datasets/{damaged.key}")).status_code == 404


async def test_a_long_verification_is_asked_for_again(
    world: World, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "PATIENCE", 0.01)
    [found] = some_held(world, 1)
    cache_of(world).gate.clear()
    waiting = await ada.post(f"/datasets/{found.key}/verify")
    assert (waiting.status_code, waiting.json()["sound"]) == (202, None)

    cache_of(world).gate.set()
    monkeypatch.setattr(datasets, "PATIENCE", SOON)
    assert (await ada.post(f"/datasets/{found.key}/verify")).json()["sound"] is True


async def test_what_a_run_uses_is_not_evicted(world: World, ada: httpx.AsyncClient) -> None:
    free, used = some_held(world, 2)
    cache_of(world).hold(used.reference, pinned_by=("018f8583",))

    gone = await ada.delete(f"/datasets/{free.key}")
    kept = await ada.delete(f"/datasets/{used.key}")

    assert gone.json() == {"key": free.key, "freed_bytes": SIZE}
    assert kept.status_code == 409
    assert "018f8583" in kept.json()["detail"]
    assert list(cache_of(world).held) == [used.key]
    assert ("ada", "dataset.evict", free.key, True) in await world.record()


async def test_each_role_may_do_what_it_may(guarded: World) -> None:
    [found] = some_held(guarded, 1)
    cache_of(guarded).gate.clear()
    async with contextlib.AsyncExitStack() as stack:
        people = {
            role: await stack.enter_async_context(
                guarded.asking(secret=await guarded.token(f"a-{role}", role))
            )
            for role in Role
        }
        other = await stack.enter_async_context(
            guarded.asking(secret=await guarded.token("another", Role.SUBMITTER))
        )
        viewer, submitter, admin = (people[role] for role in Role)
        assert (await viewer.get(f"/datasets/{found.key}")).status_code == 200
        assert (await viewer.get("/datasets")).status_code == 200
        assert (await viewer.post("/datasets", json={"uri": SECRET})).status_code == 403
        begun = await submitter.post("/datasets", json={"uri": SECRET})
        transfer = f"/datasets/{begun.json()['key']}/fetch"
        assert (await viewer.get(transfer)).status_code == 200
        assert (await viewer.delete(transfer)).status_code == 403
        assert (await other.delete(transfer)).status_code == 403
        assert (await submitter.post(f"/datasets/{found.key}/verify")).status_code == 403
        assert (await submitter.delete(f"/datasets/{found.key}")).status_code == 403
        assert (await admin.delete(transfer)).json()["state"] == "canceled"
        assert (await admin.delete(f"/datasets/{found.key}")).status_code == 200
