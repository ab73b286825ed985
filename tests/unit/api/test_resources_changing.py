"""Runs over HTTP: submitted, canceled, purged, submitted again."""

from __future__ import annotations

import dataclasses
import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from anubis.domain.access import Role
from anubis.domain.run import RunState
from anubis.entrypoints.api.resources import changing
from anubis.stages.descriptor.reading import MAX_BYTES
from anubis.testing import builders

if TYPE_CHECKING:
    from tests.unit.api.conftest import World
else:
    World = Any

TOML = """\
spec_version = "0.1.0"
info.description = "For a test"
info.labels = {task_name = "train"}
ml.benchmark_code = "true"
"""
AS_IT_IS = {"Content-Type": "application/toml"}


async def test_a_descriptor_is_taken_in_json_and_as_it_is(
    world: World, ada: httpx.AsyncClient
) -> None:
    in_json = await ada.post("/runs", json={"descriptor": TOML, "name": "a.toml", "priority": 7})
    as_it_is = await ada.post(
        "/runs",
        content=TOML,
        headers={"Content-Type": "text/plain; charset=utf-8"},
        params={"name": "a.toml", "priority": 7},
    )
    for answer in (in_json, as_it_is):
        assert answer.status_code == 201, answer.text
        run = answer.json()["run"]
        assert answer.headers["location"] == f"/api/v1/runs/{run['id']}"
        assert (run["submitter"], run["benchmark"], run["priority"]) == ("ada", "train", 7)
        document = await world.store.document(run["id"])
        assert (document.name, document.content) == ("a.toml", TOML.encode())
    assert [entry[:2] for entry in await world.record()] == [("ada", "run.submit")] * 2


async def test_fields_of_the_body_win_over_the_query(ada: httpx.AsyncClient) -> None:
    answer = await ada.post(
        "/runs", params={"priority": 1}, json={"descriptor": TOML, "priority": 2}
    )
    assert answer.json()["run"]["priority"] == 2


async def test_a_folder_of_the_service_is_used(
    world: World, ada: httpx.AsyncClient, tmp_path: Path
) -> None:
    answer = await ada.post("/runs", json={"descriptor": TOML, "directory": str(tmp_path)})
    assert answer.json()["warnings"] == []
    document = await world.store.document(answer.json()["run"]["id"])
    assert document.directory == str(tmp_path)


@pytest.mark.parametrize(
    "folder", ["/nowhere/resnet", "relative/resnet", "C:\\work\\resnet", "/" + "x" * 4000]
)
async def test_a_folder_from_elsewhere_gives_a_warning_and_an_empty_one(
    world: World, ada: httpx.AsyncClient, folder: str
) -> None:
    plain = TOML.replace('info.labels = {task_name = "train"}\n', "")
    answer = await ada.post("/runs", json={"descriptor": plain, "directory": folder})
    assert answer.status_code == 201
    [warning] = answer.json()["warnings"]
    assert (warning["field"], warning["severity"]) == ("directory", "warning")
    document = await world.store.document(answer.json()["run"]["id"])
    assert document.directory == ""
    if folder.endswith("resnet"):  # descriptor.toml is still named by its folder
        assert answer.json()["run"]["benchmark"] == "resnet"


@pytest.mark.parametrize("kind", ["runs", "schedules"])
async def test_a_folder_from_elsewhere_is_nothing_to_warn_of_where_programs_come_in_images(
    world: World, ada: httpx.AsyncClient, kind: str
) -> None:
    engines = world.service.application.engines
    assert isinstance(engines, dict)
    engines.update({name: dataclasses.replace(engines[name], needs_image=True) for name in engines})
    when = 'info.scheduling = "@daily"\n' if kind == "schedules" else ""
    text = f'{TOML}{when}env.docker_image = "a"\n'

    answer = await ada.post(f"/{kind}", json={"descriptor": text, "directory": "/nowhere"})

    assert (answer.status_code, answer.json()["warnings"]) == (201, [])


async def test_runs_do_not_see_the_secrets_of_the_service(
    world: World, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_OPERATOR", "hunter2")
    answer = await ada.post("/runs", json={"descriptor": TOML})
    plan = await world.store.plan(answer.json()["run"]["id"])
    assert "hunter2" not in plan
    assert "PATH" in plan


async def test_a_key_makes_one_run_however_often_it_is_sent(
    world: World, ada: httpx.AsyncClient
) -> None:
    key = {"Idempotency-Key": "tonight"}
    first = await ada.post("/runs", json={"descriptor": TOML}, headers=key)
    world.clock.advance(timedelta(seconds=1))
    again = await ada.post("/runs", json={"descriptor": TOML}, headers=key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["run"]["id"] == again.json()["run"]["id"]
    assert len(await world.record()) == 1

    other = await ada.post("/runs", json={"descriptor": TOML + "\n"}, headers=key)
    assert other.status_code == 409

    async with world.asking("bob") as bob:
        theirs = await bob.post("/runs", json={"descriptor": TOML}, headers=key)
    assert theirs.json()["run"]["id"] != first.json()["run"]["id"]


@pytest.mark.parametrize("key", ["", "x" * 256, "two words", "tab\t"])
async def test_a_key_that_cannot_be_one_is_refused(ada: httpx.AsyncClient, key: str) -> None:
    answer = await ada.post("/runs", json={"descriptor": TOML}, headers={"Idempotency-Key": key})
    assert answer.status_code == 422


async def test_all_problems_of_a_descriptor_are_told(world: World, ada: httpx.AsyncClient) -> None:
    answer = await ada.post("/runs", json={"descriptor": "spec_version = 1\nfoo = 2\n"})
    assert answer.status_code == 422
    body = answer.json()
    assert body["type"] == "urn:anubis:descriptor-invalid"
    assert {"spec_version", "foo"} <= {problem["field"] for problem in body["problems"]}
    assert await world.record() == []


async def test_a_descriptor_with_a_schedule_runs_only_if_it_is_wanted_now(
    ada: httpx.AsyncClient,
) -> None:
    scheduled = TOML + 'info.scheduling = "0 3 * * *"\n'
    refused = await ada.post("/runs", json={"descriptor": scheduled})
    assert refused.status_code == 422
    assert "schedule" in refused.json()["detail"]
    taken = await ada.post("/runs", json={"descriptor": scheduled, "now": True})
    assert taken.status_code == 201


HOSTILE: list[Any] = [
    b"",
    b"null",
    b"[]",
    b"{",
    b'"text"',
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"descriptor": ' + b"1" * 5000 + b"}",
    b'{"descriptor": null}',
    b'{"descriptor": "\\ud800"}',
    b'{"descriptor": "", "priority": 1e400}',
    json.dumps({"descriptor": TOML, "frobnicate": 1}).encode(),
    json.dumps({"descriptor": TOML, "priority": 10**30}).encode(),
    json.dumps({"descriptor": TOML, "priority": True}).encode(),
    json.dumps({"descriptor": TOML, "priority": "1"}).encode(),
    json.dumps({"descriptor": TOML, "priority": 101}).encode(),
    json.dumps({"descriptor": TOML, "name": "a\0b"}).encode(),
    json.dumps({"descriptor": TOML, "name": "a\x1b[2Jb"}).encode(),
    json.dumps({"descriptor": TOML, "name": "x" * 300}).encode(),
    json.dumps({"descriptor": TOML, "directory": "/a\0b"}).encode(),
    json.dumps({"descriptor": TOML, "engine": "warp"}).encode(),
    json.dumps({"descriptor": TOML, "now": "yes"}).encode(),
    json.dumps({"descriptor": "\0"}).encode(),
    json.dumps({"name": "no descriptor"}).encode(),
]


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: repr(body[:40]))
@pytest.mark.parametrize("path", ["/runs", "/schedules"])
async def test_whatever_is_sent_is_answered_with_a_problem(
    world: World, ada: httpx.AsyncClient, path: str, body: bytes
) -> None:
    answer = await ada.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert await world.record() == []


async def test_a_descriptor_of_the_wrong_kind_or_size_is_refused(ada: httpx.AsyncClient) -> None:
    form = await ada.post("/runs", data={"descriptor": TOML})
    assert form.status_code == 415
    assert "application/toml" in form.json()["detail"]
    assert (await ada.post("/runs", content=TOML)).status_code == 415
    packed = await ada.post("/runs", content=TOML, headers={**AS_IT_IS, "Content-Encoding": "gzip"})
    assert packed.status_code == 415
    assert "Content-Encoding: found 'gzip'" in packed.json()["detail"]
    large = await ada.post("/runs", content=b"#" * (MAX_BYTES + 1), headers=AS_IT_IS)
    assert large.status_code == 413
    in_json = await ada.post("/runs", json={"descriptor": "#" * (MAX_BYTES + 1)})
    assert in_json.status_code == 422


async def test_a_run_is_canceled_once_and_not_when_it_has_ended(
    world: World, ada: httpx.AsyncClient
) -> None:
    run_id = await world.a_run()
    for _ in range(2):
        answer = await ada.post(f"/runs/{run_id}/cancel")
        assert answer.status_code == 202
        assert answer.json()["cancel_requested_at"] is not None
    await world.step(run_id, builders.a_step(run_id, RunState.CANCELED))
    answer = await ada.post(f"/runs/{run_id}/cancel")
    assert answer.status_code == 409
    assert answer.json()["type"] == "urn:anubis:not-possible"


async def test_a_purged_run_is_gone(world: World, ada: httpx.AsyncClient) -> None:
    run_id = await world.a_run(RunState.CANCELED)
    await world.output(run_id, b"hello\n")
    answer = await ada.delete(f"/runs/{run_id}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await ada.get(f"/runs/{run_id}")).status_code == 404
    assert (await ada.delete(f"/runs/{run_id}")).status_code == 404
    assert await world.service.application.logs.size(run_id) == (0, 0)
    assert await world.record() == [("ada", "run.purge", run_id, True)]


async def test_purging_a_run_that_does_not_end_soon_is_answered_with_it(
    world: World, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changing, "PURGE_PATIENCE", 0.01)
    run_id = await world.a_run()
    answer = await ada.delete(f"/runs/{run_id}")
    assert answer.status_code == 202
    assert answer.json()["cancel_requested_at"] is not None
    assert await world.record() == [("ada", "run.cancel", run_id, True)]
    await world.step(run_id, builders.a_step(run_id, RunState.CANCELED))
    assert (await ada.delete(f"/runs/{run_id}")).status_code == 204


async def test_a_run_is_submitted_again_as_a_new_one(world: World, ada: httpx.AsyncClient) -> None:
    first = (await ada.post("/runs", json={"descriptor": TOML, "name": "x.toml"})).json()["run"]
    world.clock.advance(timedelta(seconds=1))
    key = {"Idempotency-Key": "again"}
    second = await ada.post(f"/runs/{first['id']}/resubmit", json={"priority": 3}, headers=key)
    assert second.status_code == 201
    run = second.json()["run"]
    assert run["id"] != first["id"]
    assert (run["descriptor_sha"], run["priority"]) == (first["descriptor_sha"], 3)
    world.clock.advance(timedelta(seconds=1))
    again = await ada.post(f"/runs/{first['id']}/resubmit", headers=key)
    assert (again.status_code, again.json()["run"]["id"]) == (200, run["id"])
    assert (await ada.post("/runs/last/resubmit", json={"x": 1})).status_code == 422


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/runs/last/cancel"), ("DELETE", "/runs/last")],
)
async def test_only_its_submitter_and_admins_may_change_a_run(
    guarded: World, method: str, path: str
) -> None:
    run_id = await guarded.a_run(RunState.FETCHING)  # submitted by "user"
    secret = await guarded.token("mallory", Role.SUBMITTER)
    async with guarded.asking(secret=secret) as mallory:
        answer = await mallory.request(method, path)
    assert answer.status_code == 403
    assert answer.json()["type"] == "urn:anubis:not-allowed"
    [(who, _, target, is_allowed)] = await guarded.record()
    assert (who, target, is_allowed) == ("mallory", run_id, False)
    assert (await guarded.store.get(run_id)).cancel_requested_at is None


async def test_viewers_look_and_do_not_submit(guarded: World) -> None:
    await guarded.a_run()
    async with guarded.asking() as nobody:
        assert (await nobody.get("/runs")).status_code == 401
        assert (await nobody.get("/runs/nothing")).status_code == 401
    async with guarded.asking(secret=await guarded.token("eve", Role.VIEWER)) as eve:
        assert (await eve.get("/runs/last")).status_code == 200
        assert (await eve.post("/runs", json={"descriptor": TOML})).status_code == 403
        assert (await eve.post("/runs/last/resubmit")).status_code == 403
        assert (await eve.post("/descriptors/validate", json={"descriptor": TOML})).json()["valid"]
    async with guarded.asking(secret=await guarded.token("ada", Role.SUBMITTER)) as ada:
        run = (await ada.post("/runs", json={"descriptor": TOML})).json()["run"]
        assert run["submitter"] == "ada"  # the token says so, whatever the header says


@pytest.mark.parametrize(
    "body",
    [
        "{" + ",".join(f'"a{number}":1' for number in range(20_000)) + "}",
        '{"descriptor":"","now":false' + ',"a":1' * 20_000 + "}",
        '{"descriptor":' + "[1," * 20_000,
        json.dumps({"descriptor": [1] * 20_000}),
        json.dumps([1] * 20_000),
    ],
    ids=["many fields", "one field many times", "no JSON", "a list for a text", "a list"],
)
async def test_a_large_body_that_makes_no_sense_is_explained_in_few_words(
    ada: httpx.AsyncClient, body: str
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await ada.post("/descriptors/validate", content=body, headers=headers)
    assert answer.status_code == 422
    assert len(answer.json()["problems"]) <= 20
    assert len(answer.content) < 20_000


async def test_a_large_descriptor_in_json_is_read(ada: httpx.AsyncClient) -> None:
    comment = "# é\n" * 20_000
    body = {"descriptor": TOML + comment, "name": "x.toml", "priority": 1, "now": True}
    answer = await ada.post("/descriptors/validate", json=body)
    assert answer.json()["valid"]


async def test_validate_tells_problems_and_stores_nothing(
    world: World, ada: httpx.AsyncClient
) -> None:
    good = await ada.post("/descriptors/validate", content=TOML, headers=AS_IT_IS)
    assert good.json() == {"valid": True, "problems": []}
    old = await ada.post(
        "/descriptors/validate", json={"descriptor": TOML + 'info.task_name = "x"\n'}
    )
    assert old.json()["valid"]
    bad = await ada.post("/descriptors/validate", json={"descriptor": "x = 1"})
    assert bad.status_code == 200
    assert not bad.json()["valid"]
    assert bad.json()["problems"]
    assert (await ada.get("/runs")).json()["runs"] == []


async def test_the_schema_of_descriptors_is_one(ada: httpx.AsyncClient) -> None:
    schema = (await ada.get("/descriptors/schema")).json()
    assert schema["$schema"].endswith("2020-12/schema")


async def test_plan_tells_what_a_run_would_be_made_of_and_stores_nothing(
    ada: httpx.AsyncClient,
) -> None:
    planned = await ada.post("/descriptors/plan", content=TOML, headers=AS_IT_IS)
    (unit,) = planned.json()["plan"]["units"]
    assert (unit["command"], unit["decides"]) == (["true"], True)
    bad = TOML.replace('"true"', '"$(NOWHERE)"')
    refused = await ada.post("/descriptors/plan", json={"descriptor": bad})
    assert refused.status_code == 422
    assert "$(NOWHERE) names a variable that is not defined" in refused.json()["detail"]
    assert (await ada.get("/runs")).json()["runs"] == []
