"""Many runs together over HTTP: benchmarks, trends, families, schedules, engines and the queue."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest

from anubis.domain.access import Role
from anubis.domain.run import RunId, RunState
from anubis.entrypoints.api.resources import history
from anubis.ports.run_store import Step
from anubis.testing import builders

if TYPE_CHECKING:
    from tests.unit.api.conftest import World
else:
    World = Any

TOML = """\
spec_version = "0.1.0"
info.description = "For a test"
info.labels = {task_name = "nightly"}
info.scheduling = "0 3 * * *"
ml.benchmark_code = "true"
"""


async def measured(world: World, number: int, benchmark: str, *values: float) -> RunId:
    """A successful run that measured these losses, if any."""
    run_id = await world.a_run(number=number, benchmark=benchmark)
    summaries = [builders.a_summary("loss", values=values)] if values else []
    step = builders.a_step(run_id, *builders.PATH_TO_SUCCESS)
    await world.step(run_id, Step(run_id=run_id, summaries=summaries))
    await world.step(run_id, step)
    return run_id


@pytest.mark.parametrize(("kind", "field"), [("benchmarks", "benchmark"), ("families", "family")])
async def test_groups_come_by_name_in_pages(
    world: World, ada: httpx.AsyncClient, kind: str, field: str
) -> None:
    names = ["a", "a b", "b/c", "ü"]
    for number, name in enumerate(names):
        await world.a_run(number=number, **{field: name})
    newest = await world.a_run(number=9, **{field: "a"})

    first = (await ada.get(f"/{kind}", params={"limit": 3})).json()
    rest = (await ada.get(f"/{kind}", params={"after": first["next"]})).json()
    groups = [*first[kind], *rest[kind]]
    assert [group["name"] for group in groups] == names
    assert groups[0] == {"name": "a", "runs": 2, "newest": newest}
    assert rest["next"] is None


@pytest.mark.parametrize("name", ["train", "team/model", "a b?c#d", "trend", "x/trend", "ü", "%2F"])
async def test_a_trend_goes_back_in_pages_whatever_the_benchmark_is_called(
    world: World, ada: httpx.AsyncClient, name: str
) -> None:
    made = [await measured(world, number, name, float(number)) for number in range(5)]
    await measured(world, 10, name)  # did not measure it
    await world.a_run(RunState.CANCELED, number=11, benchmark=name)
    path = f"/benchmarks/{quote(name, safe='')}/trend"

    found: list[tuple[str, float]] = []
    cursor: dict[str, str] = {}
    while True:
        body = (await ada.get(path, params={"metric": "loss", "limit": 2, **cursor})).json()
        assert (body["benchmark"], body["metric"]) == (name, "loss")
        found += [(point["run"], point["metric"]["last"]) for point in body["points"]]
        if body["next"] is None:
            break
        cursor = {"cursor": body["next"]}
    assert found == [(run_id, float(number)) for number, run_id in reversed([*enumerate(made)])]


async def test_a_trend_of_nothing_is_404_and_one_without_points_is_empty(
    world: World, ada: httpx.AsyncClient
) -> None:
    await world.a_run(benchmark="train")
    assert (await ada.get("/benchmarks/nothing/trend?metric=loss")).status_code == 404
    assert (await ada.get("/benchmarks/train/trend?metric=loss")).json()["points"] == []
    assert (await ada.get("/benchmarks/train/trend")).status_code == 422


async def test_a_family_shows_its_runs_and_counts_them(
    world: World, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "LARGEST_PAGE", 2)
    monkeypatch.setattr(history, "MOST_COUNTED", 4)
    made = [await world.a_run(RunState.CANCELED, number=n, family="a/b") for n in range(3)]
    made += [await world.a_run(number=n, family="a/b") for n in (3, 4)]
    body = (await ada.get("/families/a%2Fb", params={"limit": 2})).json()
    rest = (await ada.get("/families/a%2Fb", params={"cursor": body["next"]})).json()
    assert [run["id"] for run in (*body["runs"], *rest["runs"])] == made[::-1]
    assert body["counts"] == {"SUBMITTED": 2, "CANCELED": 2}  # of the newest four
    assert (await ada.get("/families/nothing")).status_code == 404


async def submitted(client: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    answer = await client.post("/schedules", json={"descriptor": TOML}, **more)
    assert answer.status_code in (200, 201), answer.text
    schedule: dict[str, Any] = answer.json()["schedule"]
    assert answer.headers["location"].endswith(schedule["id"])
    return schedule


async def test_a_schedule_that_has_not_changed_is_not_sent_again(ada: httpx.AsyncClient) -> None:
    await submitted(ada)
    for change in ("pause", "resume", "run"):
        tag = (await ada.get("/schedules/nightly")).headers["etag"]
        same = await ada.get("/schedules/nightly", headers={"If-None-Match": tag})
        assert (same.status_code, same.content) == (304, b"")
        await ada.post(f"/schedules/nightly/{change}")
        changed = await ada.get("/schedules/nightly", headers={"If-None-Match": tag})
        assert changed.status_code == 200
    several = await submitted(ada)
    assert (await ada.get("/schedules/nightly")).status_code == 409
    assert (await ada.get(f"/schedules/{several['id']}")).status_code == 200


async def test_a_schedule_lives_over_http(world: World, ada: httpx.AsyncClient) -> None:
    schedule = await submitted(ada)
    assert (schedule["cron"], schedule["submitter"]) == ("0 3 * * *", "ada")
    shown = (await ada.get("/schedules/nightly")).json()
    assert len(shown["upcoming"]) == 5
    assert shown["upcoming"][0] == schedule["next_at"]

    paused = (await ada.post("/schedules/nightly/pause")).json()
    assert (paused["next_at"], (await ada.get("/schedules/nightly")).json()["upcoming"]) == (
        None,
        [],
    )
    assert (await ada.post("/schedules/nightly/resume")).json()["paused_at"] is None

    fired = await ada.post("/schedules/nightly/run")
    assert fired.status_code == 201
    assert fired.json()["run"]["family"] == schedule["id"]
    events = (await ada.get("/schedules/nightly/events")).json()["events"]
    assert [event["number"] for event in events] == [1, 2, 3, 4]
    assert events[-1]["run"] == fired.json()["run"]["id"]

    exact = await ada.get("/schedules/nightly/descriptor", headers={"Accept": "application/toml"})
    assert exact.text == TOML
    assert (await ada.get("/schedules/nightly/descriptor")).json()["content"] == TOML

    assert (await ada.delete("/schedules/nightly")).status_code == 204
    assert (await ada.get("/schedules/nightly")).status_code == 404
    assert [entry[1] for entry in await world.record()] == [
        "schedule.submit",
        "schedule.pause",
        "schedule.resume",
        "schedule.run",
        "schedule.remove",
    ]


async def test_a_key_makes_one_schedule(world: World, ada: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "once"}
    first = await submitted(ada, headers=key)
    world.clock.advance(timedelta(seconds=1))
    assert (await submitted(ada, headers=key))["id"] == first["id"]
    answer = await ada.post("/schedules", json={"descriptor": TOML + "\n"}, headers=key)
    assert answer.status_code == 409


async def test_schedules_come_in_pages_and_by_user(world: World, ada: httpx.AsyncClient) -> None:
    made = []
    for _ in range(3):
        made.append((await submitted(ada))["id"])
        world.clock.advance(timedelta(seconds=1))
    async with world.asking("bob") as bob:
        await submitted(bob)
    first = (await ada.get("/schedules", params={"user": "ada", "limit": 2})).json()
    rest = (await ada.get("/schedules", params={"user": "ada", "cursor": first["next"]})).json()
    found = [schedule["id"] for schedule in (*first["schedules"], *rest["schedules"])]
    assert found == made[::-1]


async def test_a_descriptor_without_a_schedule_is_no_schedule(ada: httpx.AsyncClient) -> None:
    plain = TOML.replace('info.scheduling = "0 3 * * *"\n', "")
    answer = await ada.post("/schedules", json={"descriptor": plain})
    assert answer.status_code == 422
    assert "info.scheduling" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/pause"), ("POST", "/resume"), ("POST", "/run"), ("DELETE", "")],
)
async def test_only_its_owner_and_admins_may_change_a_schedule(
    guarded: World, method: str, path: str
) -> None:
    async with guarded.asking(secret=await guarded.token("ada", Role.SUBMITTER)) as ada:
        schedule = await submitted(ada)
    async with guarded.asking(secret=await guarded.token("mallory", Role.SUBMITTER)) as mallory:
        answer = await mallory.request(method, f"/schedules/{schedule['id']}{path}")
    assert answer.status_code == 403
    async with guarded.asking(secret=await guarded.token("root", Role.ADMIN)) as root:
        answer = await root.request(method, f"/schedules/{schedule['id']}{path}")
    assert answer.status_code in (200, 201, 204)


async def test_engines_tell_what_they_have_and_what_is_in_use(
    world: World, ada: httpx.AsyncClient
) -> None:
    await world.a_run(number=1)
    await world.a_run(*builders.PATH_TO_SUCCESS[:4], number=2)
    [engine] = (await ada.get("/engines")).json()["engines"]
    assert (engine["name"], engine["needs_image"]) == ("process", False)
    assert engine["capacity"]["slots"] == world.service.settings.slots
    assert (engine["in_use"]["slots"], engine["waiting"]) == (1, 1)
    assert not engine["healthy"]
    world.service.pulse.turned(world.clock)
    [engine] = (await ada.get("/engines")).json()["engines"]
    assert engine["healthy"]


async def test_the_queue_is_by_priority_and_age_in_pages(
    world: World, ada: httpx.AsyncClient
) -> None:
    descriptor = TOML.replace('info.scheduling = "0 3 * * *"\n', "")
    made: dict[int, str] = {}
    for priority in (0, 5, -5, 0, 5):
        world.clock.advance(timedelta(seconds=1))
        answer = await ada.post("/runs", json={"descriptor": descriptor, "priority": priority})
        made[len(made)] = answer.json()["run"]["id"]
    await world.a_run(*builders.PATH_TO_SUCCESS[:4], number=1)  # does not wait

    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        body = (await ada.get("/queue", params={"limit": 2, **cursor})).json()
        found += body["runs"]
        if body["next"] is None:
            break
        cursor = {"cursor": body["next"]}
    assert [run["id"] for run in found] == [made[index] for index in (1, 4, 0, 3, 2)]
    assert all(run["waiting_for"] for run in found)
    for bad in ("x", "1", "1.", "1.XYZ", "9999.0", "%00"):
        assert (await ada.get(f"/queue?cursor={bad}")).status_code == 422
