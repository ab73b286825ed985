"""The output of runs, what they measured, and what can be downloaded, over HTTP."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from anubis.domain.observation import Stream
from anubis.entrypoints.api.resources import logs, streaming
from anubis.ports.run_store import Step
from anubis.testing import builders

if TYPE_CHECKING:
    from tests.unit.api.conftest import World
else:
    World = Any

NDJSON = {"Accept": "application/x-ndjson"}
PLAIN = {"Accept": "text/plain"}


def numbers(answer: httpx.Response) -> list[int]:
    assert answer.status_code == 200, answer.text
    return [line["number"] for line in answer.json()["lines"]]


async def test_lines_come_in_pages(world: World, ada: httpx.AsyncClient) -> None:
    run_id = await world.a_run()
    await world.output(run_id, b"".join(b"line %d\n" % number for number in range(1, 8)))
    found: list[int] = []
    following: int | None = 0
    while following is not None:
        answer = await ada.get("/runs/last/logs", params={"limit": 3, "after": following})
        found += numbers(answer)
        following = answer.json()["next"]
    assert found == [*range(1, 8)]


async def test_a_page_ends_early_when_lines_are_long(
    world: World, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "LARGEST_PAGE", 100)
    run_id = await world.a_run()
    await world.output(run_id, *[b"x" * 60 + b"\n"] * 5)
    answer = await ada.get("/runs/last/logs")
    assert (numbers(answer), answer.json()["next"]) == ([1, 2], 2)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"tail": 2}, [3, 4]),
        ({"tail": 0}, []),
        ({"tail": 3, "limit": 1}, [2, 3, 4]),
        ({"contains": "loss"}, [1, 3]),
        ({"contains": "LOSS"}, []),
        ({"contains": "loss", "tail": 1}, [3]),
        ({"stream": "stdout"}, [1, 2, 3, 4]),
        ({"stream": "stderr"}, []),
        ({"stream": ["stdout", "stderr"]}, [1, 2, 3, 4]),
        ({"unit": "benchmark"}, [1, 2, 3, 4]),
        ({"unit": "server"}, []),
        ({"after": 2}, [3, 4]),
        ({"after": 4}, []),
    ],
)
async def test_filters_choose_lines_in_every_form(
    world: World, ada: httpx.AsyncClient, query: dict[str, Any], expected: list[int]
) -> None:
    run_id = await world.a_run()
    await world.output(run_id, b"loss=1\nother\nloss=2\nend")
    assert numbers(await ada.get("/runs/last/logs", params=query)) == expected

    streamed = await ada.get("/runs/last/logs", params=query, headers=NDJSON)
    assert streamed.headers["content-type"].startswith("application/x-ndjson")
    assert [json.loads(line)["number"] for line in streamed.text.splitlines()] == expected

    exact = await ada.get("/runs/last/logs", params=query, headers=PLAIN)
    assert len(exact.content.splitlines()) == len(expected)


async def test_bytes_that_are_no_text_survive_in_every_form(
    world: World, ada: httpx.AsyncClient
) -> None:
    run_id = await world.a_run()
    written = b"plain\n\xff\xfe\x00\xc3\n\r\xe2\x82\xac no newline"
    await world.output(run_id, written)

    exact = await ada.get("/runs/last/logs", headers=PLAIN)
    assert exact.content == written
    lines = (await ada.get("/runs/last/logs")).json()["lines"]
    made = b"".join(
        base64.b64decode(line["base64"])
        if line["base64"] is not None
        else (line["text"] + "\n" * line["newline"]).encode()
        for line in lines
    )
    assert made == written
    assert [line["base64"] is None for line in lines] == [True, False, True]


async def test_a_large_log_is_compressed_on_the_way(world: World, ada: httpx.AsyncClient) -> None:
    run_id = await world.a_run()
    written = b"".join(b"%06d\n" % number for number in range(60_000))
    await world.output(run_id, written)
    answer = await ada.get("/runs/last/logs", headers=PLAIN)
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.content == written


async def test_what_is_streamed_is_never_in_memory_as_a_whole() -> None:
    made = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal made
        for _ in range(100):
            made += 1
            yield b"x" * 1000

    ahead = 0
    total = 0
    async for chunk in streaming.chunked(pieces()):
        total += len(chunk)
        ahead = max(ahead, made * 1000 - total)
        assert len(chunk) < streaming.CHUNK + 1000
    assert (total, ahead) == (100_000, 0)


async def test_a_run_without_output_has_an_empty_log(world: World, ada: httpx.AsyncClient) -> None:
    await world.a_run()
    assert (await ada.get("/runs/last/logs")).json() == {"lines": [], "next": None}
    for headers in (NDJSON, PLAIN):
        answer = await ada.get("/runs/last/logs", headers=headers)
        assert (answer.status_code, answer.content) == (200, b"")


async def test_the_log_of_a_run_that_is_not_there_is_404(ada: httpx.AsyncClient) -> None:
    for headers in ({}, NDJSON, PLAIN):
        assert (await ada.get("/runs/00/logs", headers=headers)).status_code == 404


async def test_metrics_are_the_statistics(world: World, ada: httpx.AsyncClient) -> None:
    run_id = await world.a_run(*builders.PATH_TO_SUCCESS[:4])
    summaries = [builders.a_summary("loss", values=[1.0, math.inf]), builders.a_summary("time")]
    await world.step(run_id, Step(run_id=run_id, summaries=summaries))
    body = (await ada.get("/runs/last/metrics")).json()
    assert body["run"] == run_id
    assert [(metric["name"], metric["max"]) for metric in body["metrics"]] == [
        ("loss", None),
        ("time", 4.0),
    ]


async def test_series_give_every_sample_or_as_many_as_are_wanted(
    world: World, ada: httpx.AsyncClient
) -> None:
    run_id = await world.a_run()
    many = [float(number % 100) for number in range(5_000)]
    await world.samples(run_id, {"loss": [1.0, math.nan, math.inf, -math.inf], "time": many})

    loss, time = (await ada.get("/runs/last/series")).json()["series"]
    assert loss["values"] == [1.0, "NaN", "Infinity", "-Infinity"]
    assert loss["at"] == [0, 1_000_000, 2_000_000, 3_000_000]
    assert (time["count"], time["values"]) == (5_000, many)

    [shown] = (await ada.get("/runs/last/series", params={"name": "time", "points": 50})).json()[
        "series"
    ]
    assert (shown["name"], shown["count"]) == ("time", 5_000)
    assert len(shown["values"]) == len(shown["at"]) <= 50
    assert (min(shown["values"]), max(shown["values"])) == (0.0, 99.0)


async def test_series_are_chosen_by_unit_name_and_source(
    world: World, ada: httpx.AsyncClient
) -> None:
    run_id = await world.a_run()
    await world.samples(run_id, {"loss": [1.0], "time": [2.0]})
    for query, count in (
        ({"unit": "benchmark"}, 2),
        ({"unit": "server"}, 0),
        ({"source": "pattern"}, 2),
        ({"source": "emitted"}, 0),
        ({"name": "loss"}, 1),
    ):
        answer = await ada.get("/runs/last/series", params=query)
        assert len(answer.json()["series"]) == count
    for bad in ({"points": 1}, {"points": 10_001}, {"source": "x"}):
        assert (await ada.get("/runs/last/series", params=bad)).status_code == 422


async def test_a_new_run_has_a_descriptor_and_its_events_to_download(
    world: World, ada: httpx.AsyncClient
) -> None:
    run_id = await world.a_run()
    found = (await ada.get("/runs/last/artifacts")).json()["artifacts"]
    assert [one["name"] for one in found] == ["descriptor.toml", "events.json"]
    for name in ("output.log", "samples.csv", "summary.json", "environment.json"):
        assert (await ada.get(f"/runs/last/artifacts/{name}")).status_code == 404
    for name in ("..%2fanubis.sqlite", "passwd", "%00"):
        assert (await ada.get(f"/runs/{run_id}/artifacts/{name}")).status_code in (404, 422)


async def test_everything_about_a_run_can_be_downloaded(
    world: World, ada: httpx.AsyncClient
) -> None:
    run_id = await world.a_run(*builders.PATH_TO_SUCCESS[:4])
    await world.output(run_id, b"hello\xff\n", stream=Stream.STDERR)
    await world.samples(run_id, {"loss": [0.1, math.nan]})
    step = Step(
        run_id=run_id,
        summaries=[builders.a_summary("loss")],
        fingerprint=builders.a_fingerprint(),
    )
    await world.step(run_id, step)

    found = (await ada.get("/runs/last/artifacts")).json()["artifacts"]
    contents: dict[str, bytes] = {}
    for one in found:
        answer = await ada.get(f"/runs/last/artifacts/{one['name']}")
        assert answer.headers["content-type"].startswith(one["media_type"])
        assert answer.headers["content-disposition"] == f'attachment; filename="{one["name"]}"'
        assert one["bytes"] in (None, len(answer.content))
        contents[one["name"]] = answer.content
    assert contents["output.log"] == b"hello\xff\n"
    assert contents["samples.csv"].splitlines()[1:] == [
        b"1970-01-01T00:00:00.000000Z,benchmark,pattern,loss,,0.1",
        b"1970-01-01T00:00:01.000000Z,benchmark,pattern,loss,,nan",
    ]
    assert json.loads(contents["summary.json"])["metrics"][0]["name"] == "loss"
    assert [event["number"] for event in json.loads(contents["events.json"])["events"]] == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert json.loads(contents["environment.json"])["machine"] == {"cores": 2}
    assert contents["descriptor.toml"].startswith(b"spec_version")


async def test_all_events_are_in_the_file_however_many_there_are(
    world: World, ada: httpx.AsyncClient
) -> None:
    run_id = await world.a_run()
    notes = [builders.a_note(f"note {number}") for number in range(1_200)]
    await world.step(run_id, Step(run_id=run_id, notes=notes))
    answer = await ada.get("/runs/last/artifacts/events.json")
    assert [event["number"] for event in answer.json()["events"]] == [*range(1, 1_202)]


@pytest.mark.parametrize("skip", [0, 1, 6, 7, 12, 13, 1000])
async def test_bytes_go_on_where_a_download_broke_off(
    world: World, ada: httpx.AsyncClient, skip: int
) -> None:
    run_id = await world.a_run()
    await world.output(run_id, b"first\nsecond\n")
    answer = await ada.get(f"/runs/{run_id}/logs", params={"skip": skip}, headers=PLAIN)
    assert answer.content == b"first\nsecond\n"[skip:]
