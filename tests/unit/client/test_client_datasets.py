"""Datasets through the SDK: followed to their end, let go when nobody waits any more."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.unit.client.given import Service, problem, refused

from anubis.domain.dataset import DatasetKey, DatasetKind, Progress, Reference
from anubis.domain.errors import (
    DatasetInvalid,
    DatasetNotFound,
    NotPossible,
    PermanentError,
    UnexpectedAnswer,
)
from anubis.domain.fetch import FetchState

REFERENCE = Reference(uri="s3://bucket/set.tgz", unpack=True)
KEY = REFERENCE.key
NOON = "2024-05-17T12:00:00.000000Z"
LATER = "2024-05-17T13:00:00.000000Z"

UNKNOWN = problem(404, "dataset-not-found", "no transfer")


def fetch(state: str = "fetching", done: int = 0, **more: Any) -> httpx.Response:
    shape = {
        "key": KEY,
        "uri": REFERENCE.uri,
        "state": state,
        "wanted_by": ["ada"],
        "started_at": NOON,
        "ended_at": None if state == "fetching" else NOON,
        "done_bytes": done,
        "total_bytes": 10,
        "problem": None,
        **more,
    }
    return httpx.Response(200, json=shape)


def shape(key: str = KEY, **more: Any) -> dict[str, Any]:
    return {
        "key": key,
        "uri": REFERENCE.uri,
        "checksum": None,
        "unpacked": True,
        "kind": "directory",
        "path": None,
        "digest": "sha256:0",
        "size_bytes": 10,
        "files": 3,
        "fetched_at": NOON,
        "used_at": NOON,
        "pinned_by": [],
        **more,
    }


def dataset(**more: Any) -> httpx.Response:
    return httpx.Response(200, json=shape(**more))


def paths(service: Service) -> list[str]:
    return [
        f"{one.method} {one.url.path.removeprefix('/api/v1')}".replace(KEY, "KEY")
        for one in service.requests
    ]


async def test_a_transfer_is_followed_until_the_dataset_is_there() -> None:
    service = Service(fetch(), fetch(done=4), fetch("done", done=10), dataset())
    seen = list[Progress]()

    async with service.client() as client:
        found = await client.datasets.add(REFERENCE, report=seen.append)

    assert (found.key, found.kind, found.path) == (KEY, DatasetKind.DIRECTORY, "")
    assert [(one.done_bytes, one.total_bytes) for one in seen] == [(0, 10), (4, 10), (10, 10)]
    assert service.clock.pauses == [0.1, 0.2]
    assert paths(service) == [
        "POST /datasets",
        *["GET /datasets/KEY/fetch"] * 2,
        "GET /datasets/KEY",
    ]


async def test_a_transfer_is_asked_for_again_when_the_service_was_started_anew() -> None:
    service = Service(fetch(), refused(), UNKNOWN, fetch(done=4), fetch("done"), dataset())

    async with service.client() as client:
        await client.datasets.add(REFERENCE)

    assert paths(service).count("POST /datasets") == 2


@pytest.mark.parametrize(
    ("state", "named", "expected"),
    [
        ("failed", "dataset-invalid", DatasetInvalid),
        ("failed", "storage-full", PermanentError),
        ("failed", "descriptor-invalid", PermanentError),
        ("failed", "something-newer", PermanentError),
        ("canceled", None, NotPossible),
    ],
)
async def test_what_a_transfer_died_of_is_raised_here(
    state: str, named: str | None, expected: type[Exception]
) -> None:
    reason = None if named is None else {"type": f"urn:anubis:{named}", "detail": "why"}
    service = Service(fetch(state, problem=reason))

    async with service.client() as client:
        with pytest.raises(expected, match="why" if named else "was stopped"):
            await client.datasets.add(REFERENCE)


async def test_who_waits_no_more_wants_the_transfer_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = asyncio.Event()
    service = Service(lambda request: fetch() if request.method != "DELETE" else UNKNOWN)
    monkeypatch.setattr(service.clock, "sleep", asyncio.sleep)

    async with service.client() as client:
        task = asyncio.ensure_future(client.datasets.add(REFERENCE, report=lambda _: begun.set()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert paths(service)[-1] == "DELETE /datasets/KEY/fetch"


async def test_all_pages_are_read_and_sorted_by_use() -> None:
    pages = [
        {"datasets": [shape("1", used_at=NOON)], "next": "1.2"},
        {"datasets": [shape("2", used_at=LATER)], "next": None},
    ]
    service = Service(*[httpx.Response(200, json=page) for page in pages])

    async with service.client() as client:
        found = await client.datasets.all()

    assert [one.key for one in found] == ["2", "1"]
    assert service.requests[1].url.params["cursor"] == "1.2"


async def test_a_verification_is_asked_about_until_it_is_known() -> None:
    unknown = httpx.Response(202, json={"key": KEY, "sound": None})
    service = Service(unknown, unknown, httpx.Response(200, json={"key": KEY, "sound": False}))

    async with service.client() as client:
        assert not await client.datasets.verify(KEY)

    assert len(service.requests) == 3


async def test_an_eviction_whose_answer_got_lost_was_done() -> None:
    gone = problem(404, "dataset-not-found", "gone")
    service = Service(httpx.ReadError("lost"), gone)
    async with service.client() as client:
        assert await client.datasets.evict(KEY) == 0

    unknown = Service(gone)
    async with unknown.client() as client:
        with pytest.raises(DatasetNotFound):
            await client.datasets.evict(KEY)


async def test_a_transfer_can_be_begun_and_looked_at_by_hand() -> None:
    service = Service(fetch(), fetch("done"))
    async with service.client() as client:
        begun = await client.datasets.start(REFERENCE)
        ended = await client.datasets.fetch(DatasetKey(begun.key))

    assert (begun.state, ended.state) == (FetchState.FETCHING, FetchState.DONE)


@pytest.mark.parametrize("change", [{"checksum": "crc:1"}, {"kind": "x"}, {"size_bytes": "1"}])
async def test_an_answer_that_makes_no_sense_is_told_as_such(change: dict[str, Any]) -> None:
    async with Service(dataset(**change)).client() as client:
        with pytest.raises(UnexpectedAnswer):
            await client.datasets.get("0")
