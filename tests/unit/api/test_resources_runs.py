"""Runs over HTTP: looked at."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from anubis.domain.run import RunState
from anubis.ports.run_store import Step
from anubis.testing import builders
from anubis.testing.clock import NOON

if TYPE_CHECKING:
    from tests.unit.api.conftest import World
else:
    World = Any


def ids(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [run["id"] for run in answer.json()["runs"]]


async def test_pages_follow_each_other_without_gap_or_repetition(
    world: World, ada: httpx.AsyncClient
) -> None:
    made = [await world.a_run(number=number) for number in range(7)]
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        answer = await ada.get("/runs", params={"limit": 3, **cursor})
        found += ids(answer)
        if answer.json()["next"] is None:
            break
        cursor = {"cursor": answer.json()["next"]}
        await world.a_run(number=100 + len(found))  # submitted meanwhile: not in later pages

    assert found == made[::-1]


async def test_a_full_page_that_is_the_last_one_says_so(
    world: World, ada: httpx.AsyncClient
) -> None:
    await world.a_run()
    assert (await ada.get("/runs", params={"limit": 1})).json()["next"] is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"state": "SUBMITTED"}, [0, 2]),
        ({"state": ["SUBMITTED", "CANCELED"]}, [0, 1, 2]),
        ({"state": "RUNNING"}, []),
        ({"benchmark": "bert"}, [1]),
        ({"label": "team=vision"}, [0]),
        ({"label": "note=a=b"}, [2]),
        ({"label": ["team=vision", "team=vision"]}, [0]),
        ({"label": ["team=vision", "note=a=b"]}, []),
        ({"family": "sweep"}, [2]),
        ({"user": "user"}, [0, 1, 2]),
        ({"user": "nobody"}, []),
        ({"since": "2024-05-17T14:30:00+02:00"}, [1, 2]),
        ({"until": "2024-05-17T12:30:00"}, [0]),
        ({"since": "2024-05-17T12:30:00Z", "until": "2024-05-17T13:30:00Z"}, [1]),
        ({"state": "SUBMITTED", "since": "2024-05-17"}, [0, 2]),
    ],
)
async def test_filters_choose(
    world: World, ada: httpx.AsyncClient, query: dict[str, Any], expected: list[int]
) -> None:
    hour = timedelta(hours=1)
    made = [
        await world.a_run(labels={"team": "vision"}, number=0),
        await world.a_run(RunState.CANCELED, benchmark="bert", at=NOON + hour, number=1),
        await world.a_run(labels={"note": "a=b"}, family="sweep", at=NOON + 2 * hour, number=2),
    ]
    found = ids(await ada.get("/runs", params=query))
    assert sorted(number for number, run in enumerate(made) if run in found) == expected


@pytest.mark.parametrize(
    "query",
    [
        "state=UNKNOWN",
        "limit=0",
        "limit=501",
        "limit=x",
        f"limit={10**30}",
        "label=team",
        "label==x",
        "since=yesterday",
        "since=0",
        "since=2024-13-01",
        "cursor=..%2f",
        "cursor=%00",
        "user=%00",
        "frobnicate=1",
        "user=ada&user=bob",
        "limit=1&limit=2",
    ],
)
async def test_a_query_that_makes_no_sense_is_a_problem(
    world: World, ada: httpx.AsyncClient, query: str
) -> None:
    answer = await ada.get(f"/runs?{query}")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert query.partition("=")[0] in body["problems"][0]["field"]


async def test_moments_at_the_ends_of_the_calendar_are_fine(ada: httpx.AsyncClient) -> None:
    for moment in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        assert ids(await ada.get("/runs", params={"since": moment})) == []
        assert ids(await ada.get("/runs", params={"until": moment})) == []


async def test_the_last_run_is_ones_own_if_there_is_one(
    world: World, ada: httpx.AsyncClient
) -> None:
    mine = await world.a_run(number=1, submitter="ada")
    theirs = await world.a_run(number=2, submitter="bob")
    assert (await ada.get("/runs/last")).json()["id"] == mine
    assert (await ada.get("/runs/LAST")).json()["id"] == mine
    async with world.asking("vic") as vic:
        assert (await vic.get("/runs/last")).json()["id"] == theirs


async def test_a_run_is_found_by_its_id_its_start_and_as_the_last(
    world: World, ada: httpx.AsyncClient
) -> None:
    run_id = await world.a_run()
    for reference in (run_id, run_id[:8], run_id.upper(), "last"):
        assert (await ada.get(f"/runs/{reference}")).json()["id"] == run_id


@pytest.mark.parametrize("reference", ["0000", "nothing", "%00", "%ff%fe", "..", "a%2fb", "%20"])
async def test_what_is_not_there_is_404(ada: httpx.AsyncClient, reference: str) -> None:
    answer = await ada.get(f"/runs/{reference}")
    assert answer.status_code == 404
    assert answer.json()["type"] in ("urn:anubis:run-not-found", "about:blank")


async def test_a_reference_that_is_far_too_long_is_not_even_looked_for(
    ada: httpx.AsyncClient,
) -> None:
    assert (await ada.get(f"/runs/{'0' * 1000}")).status_code == 422


async def test_a_start_that_several_runs_share_is_409_and_names_them(
    world: World, ada: httpx.AsyncClient
) -> None:
    first, second = await world.a_run(number=1), await world.a_run(number=2)
    answer = await ada.get(f"/runs/{first[:6]}")
    assert answer.status_code == 409
    assert first in answer.json()["detail"]
    assert second in answer.json()["detail"]


async def test_a_run_that_has_not_changed_is_304(world: World, ada: httpx.AsyncClient) -> None:
    run_id = await world.a_run()
    tag = (await ada.get(f"/runs/{run_id}")).headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = await ada.get(f"/runs/{run_id}", headers={"If-None-Match": known})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == tag

    await world.step(run_id, builders.a_step(run_id, RunState.FETCHING))
    answer = await ada.get(f"/runs/{run_id}", headers={"If-None-Match": tag})
    assert answer.status_code == 200
    assert answer.headers["etag"] != tag


async def test_what_a_run_waits_for_is_told_and_part_of_its_tag(
    world: World, ada: httpx.AsyncClient
) -> None:
    ahead, run_id = await world.a_run(number=1), await world.a_run(number=2)
    before = await ada.get(f"/runs/{run_id}")
    assert "1 run ahead" in before.json()["waiting_for"]

    await world.step(ahead, builders.a_step(ahead, RunState.CANCELED))
    after = await ada.get(f"/runs/{run_id}", headers={"If-None-Match": before.headers["etag"]})
    assert after.status_code == 200
    assert after.json()["version"] == before.json()["version"]


async def test_status_tells_everything_about_a_run(world: World, ada: httpx.AsyncClient) -> None:
    run_id = await world.a_run(*builders.PATH_TO_SUCCESS[:4])
    summary, fingerprint = builders.a_summary("loss"), builders.a_fingerprint()
    await world.step(run_id, Step(run_id=run_id, summaries=[summary], fingerprint=fingerprint))
    body = (await ada.get("/runs/last/status")).json()
    assert body["run"]["state"] == "RUNNING"
    assert [event["number"] for event in body["events"]] == [1, 2, 3, 4, 5]
    assert [metric["name"] for metric in body["metrics"]] == ["loss"]
    assert body["environment"] == {"machine": {"cores": 2}, "moment": {"load": 0.5}}
    assert (await ada.get("/runs/last/environment")).json() == body["environment"]


async def test_a_run_that_has_not_started_has_no_environment(
    world: World, ada: httpx.AsyncClient
) -> None:
    await world.a_run()
    answer = await ada.get("/runs/last/environment")
    assert (answer.status_code, answer.json()) == (200, None)


async def test_the_descriptor_comes_as_json_or_byte_for_byte(
    world: World, ada: httpx.AsyncClient
) -> None:
    await world.a_run()
    shape = (await ada.get("/runs/last/descriptor")).json()
    exact = await ada.get("/runs/last/descriptor", headers={"Accept": "application/toml"})
    assert exact.headers["content-type"].startswith("application/toml")
    assert shape["content"].encode() == exact.content
    assert shape["name"] == "train.toml"


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "application/json"),
        ("text/html", "application/json"),
        ("application/*;q=0.5, application/toml", "application/toml"),
        ("application/toml;q=0.1, application/json;q=0.2", "application/json"),
        ("application/toml;q=nonsense", "application/json"),
        ("", "application/json"),
    ],
)
async def test_accept_decides_by_quality(
    world: World, ada: httpx.AsyncClient, accept: str, media_type: str
) -> None:
    await world.a_run()
    answer = await ada.get("/runs/last/descriptor", headers={"Accept": accept})
    assert answer.headers["content-type"].startswith(media_type)


async def test_counts_are_by_state(world: World, ada: httpx.AsyncClient) -> None:
    await world.a_run(number=1)
    await world.a_run(RunState.CANCELED, number=2)
    assert (await ada.get("/runs/counts")).json() == {"counts": {"SUBMITTED": 1, "CANCELED": 1}}


async def test_events_of_a_run_come_in_pages(world: World, ada: httpx.AsyncClient) -> None:
    await world.a_run(*builders.PATH_TO_SUCCESS)
    first = (await ada.get("/runs/last/events", params={"limit": 4})).json()
    rest = (await ada.get("/runs/last/events", params={"after": first["next"]})).json()
    assert [event["number"] for event in (*first["events"], *rest["events"])] == [*range(1, 8)]
    assert (first["next"], rest["next"]) == (4, None)


async def test_events_of_all_runs_come_in_the_order_they_were_stored(
    world: World, ada: httpx.AsyncClient
) -> None:
    first, second = await world.a_run(number=2), await world.a_run(number=1)
    body = (await ada.get("/events", params={"limit": 1})).json()
    rest = (await ada.get("/events", params={"after": body["next"]})).json()
    events = [*body["events"], *rest["events"]]
    assert [(event["run"], event["sequence"]) for event in events] == [(first, 1), (second, 2)]


async def test_a_number_too_large_for_the_store_is_a_problem_not_a_defect(
    world: World, ada: httpx.AsyncClient
) -> None:
    await world.a_run()
    for path in ("/events", "/runs/last/events", "/runs/last/logs"):
        assert (await ada.get(path, params={"after": 2**63 - 1})).status_code == 200
        assert (await ada.get(path, params={"after": 2**63})).status_code == 422
        assert (await ada.get(path, params={"after": -1})).status_code == 422


async def test_a_path_says_all_that_can_be_done_with_it(ada: httpx.AsyncClient) -> None:
    answer = await ada.put("/runs")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")
    assert (await ada.put("/runs/counts")).headers["allow"] == "GET"
    assert (await ada.put("/runs/last")).headers["allow"] == "DELETE, GET"
