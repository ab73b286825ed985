"""The routes of the original wire: what each answers, and how."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from anubis.domain.access import Role
from anubis.domain.document import Document
from anubis.domain.run import RunId, RunState
from anubis.testing import builders
from anubis.testing.contracts.script_store import a_file, an_archive

if TYPE_CHECKING:
    from tests.unit.legacy.conftest import Wire
else:
    Wire = Any

TOML = b"""\
spec_version = "0.1.0"
info.description = "For a test"
ml.benchmark_code = "true"
"""
NOWHERE = "00000000-0000-0000-0000-000000000000"
S = RunState


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/ready", "sure am ready"),
        ("/lively", "sure am lively"),
        ("/", "measures machine-learning systems"),
        ("/api", "measures machine-learning systems"),
        ("/api/tools/anubis", "#!/usr/bin/env python3\n"),
        ("/downloads/anubis-latest", "#!/usr/bin/env python3\n"),
        ("/api/tools/anubis-0.6.2", "#!/usr/bin/env python3\n"),
        ("/downloads/anubis-0.6.2-latest", "#!/usr/bin/env python3\n"),
        ("/api/tools/descriptor_schema.json", "#!/usr/bin/env python3\n"),
        ("/api/job/script/" + "0" * 40 + ".tar", "false"),
        ("/api/job/script/..%2f..%2fetc%2fpasswd", "Not found"),
        ("/api/job/results/me/" + NOWHERE, "[]"),
        ("/api/job/me", '{"action_ids":[]}'),
        ("/api/job/descriptor", '{"action_ids":[]}'),
    ],
)
async def test_what_can_be_read_can_be_read_and_looked_up(wire: Wire, path: str, text: str) -> None:
    read = await wire.http.get(path)
    head = await wire.http.head(path)

    assert text in read.text
    assert head.status_code == read.status_code
    assert head.headers["content-type"] == read.headers["content-type"]


@pytest.mark.parametrize("path", ["/ready/", "/api/job/me/", "/api/job/me/x/", "/ready//", "/api/"])
async def test_an_address_with_a_last_slash_is_moved_for_good(wire: Wire, path: str) -> None:
    answer = await wire.http.get(path + "?since=1%3a2")

    assert answer.status_code == 301
    assert answer.headers["location"] == "/" + path.strip("/") + "?since=1%3a2"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/job"),
        ("POST", "/api/job/"),
        ("DELETE", "/api/job/me"),
        ("GET", "/nowhere"),
        ("POST", "/nowhere/"),
        ("GET", "/api/tools"),
        ("GET", "/api/tools/a/b"),
        ("GET", "/downloads/anubis"),
    ],
)
async def test_what_is_not_there_is_a_page_that_says_so(wire: Wire, method: str, path: str) -> None:
    answer = await wire.http.request(method, path)

    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")


async def test_below_our_own_api_what_is_not_there_is_a_problem(wire: Wire) -> None:
    answer = await wire.http.get("/api/v1/nowhere/")

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_submission_is_answered_with_its_bare_id_and_becomes_a_run(wire: Wire) -> None:
    action = await wire.submitted()
    run = await wire.store.get(RunId(action))
    jobs = (await wire.http.get("/api/job/me")).json()

    assert (run.submitter, run.benchmark, run.engine) == ("someone", "bench", "process")
    assert (await wire.store.document(run.id)).content == TOML
    assert [job["action_id"] for job in jobs["action_ids"]] == [action]
    assert (await wire.service.access.audit())[0].action == "run.submit"


async def test_the_envelope_is_the_originals(wire: Wire) -> None:
    action = await wire.submitted()
    [first] = await wire.status(action)
    now = first["tstamp"]
    payload = first.pop("payload")
    toml = payload["toml"]

    assert first == {
        "action_id": action,
        "parent_action_id": None,
        "message_id": first["message_id"],
        "client_id": "me",
        "client_version": "0.6.2",
        "client_username": "someone",
        "client_sha1": "5" * 40,
        "date": "Wed Oct 30 13:17:23 UTC 2019",
        "authenticated": False,
        "tstamp": now,
        "visited": first["visited"],
        "type": "BAI_APP_STATUS",
    }
    assert [(one["svc"], one["tstamp"]) for one in first["visited"]] == [
        ("anubis-client", 1572441443000),
        ("bai-bff", now),
        ("bai-bff", now),
    ]
    assert payload["status"] == "SUCCEEDED"
    assert payload["srv_event"]["toml"] == toml
    assert base64.b64decode(toml["doc"]) == TOML
    assert toml["contents"]["ml"] == {"benchmark_code": "true"}
    assert (toml["descriptor_filename"], toml["verified"]) == ("bench.toml", True)


async def test_the_other_services_speak_alone_and_show_what_they_acted_on(wire: Wire) -> None:
    action = await wire.submitted()
    await wire.move(action, S.FETCHING, S.QUEUED)
    _, *others = await wire.status(action)

    for event in others:
        [visit] = event["visited"]
        assert visit["tstamp"] == event["tstamp"]
        assert event["payload"]["src_event"]["type"] == "BAI_APP_BFF"
        assert event["payload"]["src_event"]["payload"]["toml"]["doc"]
        assert "toml" not in event["payload"]


async def test_a_large_descriptor_is_not_repeated_in_every_message(wire: Wire) -> None:
    action = await wire.submitted(TOML + b"# " + b"x" * 100_000 + b"\n")
    await wire.move(action, S.FETCHING, S.QUEUED)
    answer = await wire.http.get(f"/api/job/me/{action}")

    assert len(answer.content) < 500_000
    assert "doc" in answer.json()[0]["payload"]["toml"]


async def test_contents_that_json_cannot_say_are_said_in_text(wire: Wire) -> None:
    extra = b"[custom_params.hyper_params]\na = nan\nb = 2020-01-01\nc = [inf, 1e3, true]\n"
    action = await wire.submitted(TOML + extra)
    [first] = await wire.status(action)

    found = first["payload"]["toml"]["contents"]["custom_params"]["hyper_params"]
    assert found == {"a": "nan", "b": "2020-01-01", "c": ["inf", 1000.0, True]}


async def test_polling_tells_everything_once(wire: Wire) -> None:
    action = await wire.submitted()
    told, since = list[str](), "0"
    for states in ([], [S.FETCHING, S.QUEUED], [S.STARTING, S.RUNNING], [S.FINISHING, S.FAILED]):
        if states:
            await wire.move(action, *states)
        for event in await wire.status(action, since):
            told.append(event["payload"]["message"])
            since = f"{event['visited'][-1]['tstamp']}:{event['message_id']}"
        assert await wire.status(action, since) == []
        wire.clock.advance(timedelta(seconds=5))

    assert told == await wire.texts(action)
    assert len(told) == len(set(told)) == 11


async def test_how_a_run_ended_is_told_beside_the_fixed_text(wire: Wire) -> None:
    action = await wire.submitted()
    await wire.move(action, *builders.PATH_TO_SUCCESS[:-1], S.FAILED)
    payload = (await wire.status(action))[-2]["payload"]

    assert payload["message"] == "Benchmark failed for an unknown reason"
    assert (payload["reason"], payload["exit_code"]) == ("it ended as FAILED", 1)


async def test_actions_of_others_are_not_shown(wire: Wire) -> None:
    action = await wire.submitted()
    await wire.output(action, b"secret\n")

    assert await wire.status(action, client="other") == []
    assert (await wire.http.get(f"/api/job/results/other/{action}")).json() == []


async def test_a_run_that_came_another_way_is_its_submitters(wire: Wire) -> None:
    document = Document(name="their.toml", directory="", content=TOML)
    run = builders.a_run(document=document)
    await wire.store.add(run, document, builders.PLAN, "submitted")

    [first] = await wire.status(run.id, client="user")
    assert first["visited"][0]["svc"] == "anubis-client"
    assert first["payload"]["toml"]["descriptor_filename"] == "their.toml"
    assert first["payload"]["toml"]["verified"] is True


async def test_all_lines_of_the_benchmark_are_its_results(wire: Wire) -> None:
    action = await wire.submitted()
    lines = [f'line {number} \u00b5 "q"\n'.encode() for number in range(2000)]
    await wire.output(action, *lines, b"\xff\x00 no newline")
    answer = await wire.http.get(f"/api/job/results/me/{action}")
    hits = answer.json()

    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert len(hits) == 2001
    assert hits[7]["_source"] == {"log": 'line 7 µ "q"\n'}
    assert hits[-1]["_source"]["log"] == "\ufffd\x00 no newline"
    assert set(hits[0]) == {"_index", "_type", "_id", "_score", "_source", "sort"}


async def test_output_of_other_units_is_not_among_the_results(wire: Wire) -> None:
    action = await wire.submitted()
    await wire.output(action, b"x\n", unit="server")

    assert (await wire.http.get(f"/api/job/results/me/{action}")).json() == []


async def test_a_digest_that_does_not_fit_only_leaves_it_unverified(wire: Wire) -> None:
    answer = await wire.submit(sha1="wrong")
    [first] = await wire.status(answer.text)

    assert first["payload"]["toml"]["verified"] is False


async def test_a_descriptor_that_comes_twice_in_one_file_is_taken_once(wire: Wire) -> None:
    action = await wire.submitted(TOML + TOML)

    assert (await wire.store.document(RunId(action))).content == TOML


async def test_scripts_are_kept_and_need_not_be_sent_again(wire: Wire) -> None:
    archive = an_archive(a_file("src/main.py"))
    content = TOML + f'ml.script.script = "{archive.name}"\n'.encode()
    before = (await wire.http.get(f"/api/job/script/{archive.name}")).text
    first = await wire.submit(content, script=archive)
    after = (await wire.http.get(f"/api/job/script/{archive.name}")).text
    second = await wire.submit(content)
    [told] = await wire.status(second.text)

    assert (before, after) == ("false", "true")
    assert first.status_code == second.status_code == 200
    assert told["payload"]["srv_event"]["scripts"] == [{"dst": f"anubis0/{archive.name}"}]


async def test_an_archive_that_could_do_harm_is_refused_and_nothing_runs(wire: Wire) -> None:
    evil = an_archive(a_file("../../evil"))
    answer = await wire.submit(script=evil)

    assert answer.status_code == 400
    assert answer.text.startswith("Could Not Parse Submitted Descriptor: script archive")
    assert (await wire.http.get(f"/api/job/script/{evil.name}")).text == "false"
    assert await wire.store.counts() == {}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "found an empty file"),
        (b"spec_version = ", "bench.toml:1:"),
        (b'info.scheduling = "0 0 0 0"\n' + TOML, "INVALID CRONTAB ENTRY: 0 0 0 0"),
        (b"info.scheduling = 7\n" + TOML, "INVALID CRONTAB ENTRY: 7"),
        (TOML + b'info.execution_engine = "aws.sagemaker"\n', "found 'aws.sagemaker'"),
        (
            TOML + b'[[data.sources]]\nsrc = "ftp://me:secret@a/b"\npath = "/b"\n',
            "data.sources[0].src",
        ),
        (b"#" + b"x" * 1_100_000, "at most 1,048,576 bytes"),
    ],
)
async def test_a_descriptor_that_cannot_be_run_is_refused_in_the_originals_words(
    wire: Wire, content: bytes, complaint: str
) -> None:
    answer = await wire.submit(content)

    assert answer.status_code == 400
    assert answer.text.startswith("Could Not Parse Submitted Descriptor: ")
    assert complaint in answer.text


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        ({"content": b"{}"}, "expected multipart/form-data"),
        ({"data": {"submit-event": "{}"}}, "expected multipart/form-data"),
        ({"files": {"other": (None, "x")}}, "the part 'submit-event' is missing"),
        ({"files": {"submit-event": (None, "{}")}}, "found nothing, expected an object"),
        ({"files": {"submit-event": ("file", b"\xff")}}, "found no JSON"),
        ({"files": {"submit-event": (None, "x" * 3_000_000)}}, "maximum size"),
        ({"files": {"submit-event": ("file", b"x" * 3_000_000)}}, "more than 2097152 bytes"),
        ({"files": [("submit-event", (None, "x"))] * 20}, "Too many fields"),
        (
            {"files": {"submit-event": (None, "{}"), "script": (None, "x")}},
            "the part 'script' has no filename",
        ),
        (
            {"content": b"x", "headers": {"content-type": "multipart/form-data"}},
            "Missing boundary",
        ),
        (
            {"content": b"x", "headers": {"content-type": "multipart/form-data; boundary=y"}},
            "Could Not Parse Submitted Descriptor: ",
        ),
    ],
)
async def test_a_body_that_is_no_submission_is_refused(
    wire: Wire, request_: dict[str, Any], complaint: str
) -> None:
    answer = await wire.http.post("/api/job/descriptor", **request_)

    assert answer.status_code == 400
    assert answer.text.startswith("Could Not Parse Submitted Descriptor: ")
    assert complaint in answer.text


async def test_tokens_say_who_submits_and_who_may_cancel(guarded: Wire) -> None:
    ada = ("anybody", await guarded.token("ada", Role.SUBMITTER))
    bob = ("anybody", await guarded.token("bob", Role.SUBMITTER))
    action = (await guarded.submit(auth=ada)).text
    path = f"/api/job/me/{action}"
    payload = {"command": "cancel", "args": {"target_action_id": action}}
    body = guarded.message(payload)
    refused = await guarded.http.request("DELETE", path, json=body, auth=bob)
    taken = await guarded.http.request("DELETE", path, json=body, auth=ada)

    assert (await guarded.store.get(RunId(action))).submitter == "ada"
    assert refused.status_code == 403
    assert taken.status_code == 200
    assert (await guarded.http.get(path, auth=bob)).status_code == 200


async def test_a_viewer_may_look_and_not_submit(guarded: Wire) -> None:
    secret = ("x", await guarded.token("eve", Role.VIEWER))

    assert (await guarded.submit(auth=secret)).status_code == 403
    assert (await guarded.http.get("/api/job/me", auth=secret)).status_code == 200
    assert (await guarded.http.get("/ready")).status_code == 200


async def test_a_client_that_polls_gets_no_body_with_an_error(guarded: Wire) -> None:
    polled = await guarded.http.get(f"/api/job/me/{NOWHERE}")
    other = await guarded.http.get("/api/job/me")

    assert (polled.status_code, polled.content) == (401, b"")
    assert other.json()["status"] == 401


async def test_the_answer_to_a_refused_submission_holds_nothing_like_an_id(wire: Wire) -> None:
    content = TOML + b'[output]\nx = "0d9e6d4f-7a1b-4a5c-9d3e-1f2a3b4c5d6e"\n'
    answer = await wire.submit(content)

    assert answer.status_code == 400
    assert "0d9e6d4f-7a1b" not in answer.text


async def test_jobs_come_in_pages_of_a_hundred(wire: Wire) -> None:
    actions = list[str]()
    for _ in range(103):
        actions.append(await wire.submitted())
        wire.clock.advance(timedelta(milliseconds=1))
    first = (await wire.http.get("/api/job/me")).json()["action_ids"]
    last = f"{first[-1]['timestamp']}:{first[-1]['action_id']}"
    rest = (await wire.http.get("/api/job/me", params={"since": last})).json()["action_ids"]

    assert [job["action_id"] for job in first + rest] == actions
    assert len(first) == 100


async def test_metrics_are_where_the_client_reached_the_service(wire: Wire) -> None:
    action = await wire.submitted()
    await wire.move(action, *builders.PATH_TO_SUCCESS)
    [address] = {text.split(" at ")[1] for text in await wire.texts(action) if " at " in text}

    assert address == f"http://localhost:8080/api/v1/runs/{action}/metrics"
    assert (await wire.http.get(address)).status_code == 200
