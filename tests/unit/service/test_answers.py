"""What every answer carries: ids, headers, problems, sizes, compression; and who is kept out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx
import pytest
from pydantic import BaseModel, Field
from structlog.testing import capture_logs

from anubis.domain import errors
from anubis.domain.access import Role
from anubis.domain.problem import Problem
from anubis.entrypoints.api import sizes

from .conftest import World

PROBLEM = Problem(file="a.toml", line=1, column=2, field="ml", found="'x'", expected="a table")


class Thing(BaseModel):
    """A body for tests."""

    number: int


class StrictThing(BaseModel, extra="forbid"):
    """A body with more to get wrong."""

    number: int
    size: int = Field(1, ge=1)
    name: str = Field("x", min_length=1)


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (errors.RunNotFound("none"), 404, "run-not-found"),
        (errors.ScheduleNotFound("none"), 404, "schedule-not-found"),
        (errors.TokenNotFound("none"), 404, "token-not-found"),
        (errors.RunAmbiguous("two"), 409, "run-ambiguous"),
        (errors.ScheduleAmbiguous("two"), 409, "schedule-ambiguous"),
        (errors.NotPossible("no"), 409, "not-possible"),
        (errors.DescriptorInvalid([PROBLEM]), 422, "descriptor-invalid"),
        (errors.UserError("wrong"), 422, "user-error"),
        (errors.NotAuthenticated("who?"), 401, "not-authenticated"),
        (errors.NotAllowed("no"), 403, "not-allowed"),
        (errors.TooMuch("slow", retry_after=2.5), 429, "too-much"),
        (errors.StoreUnavailable("busy"), 503, "store-unavailable"),
        (errors.EngineUnavailable("busy"), 503, "engine-unavailable"),
        (errors.StoreUnusable("broken"), 500, "store-unusable"),
    ],
)
async def test_every_error_is_a_problem_with_its_status(
    world: World, client: httpx.AsyncClient, error: Exception, status: int, kind: str
) -> None:
    @world.app.get("/broken")
    async def broken() -> None:
        raise error

    answer = await client.get("/broken")
    body = answer.json()
    assert answer.status_code == body["status"] == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert body["type"] == f"urn:anubis:{kind}"
    assert body["detail"] == str(error)
    assert body["request_id"] == answer.headers["x-request-id"]
    assert body["title"]
    assert ("problems" in body) == isinstance(error, errors.DescriptorInvalid)


async def test_those_who_may_come_back_are_told_when(
    world: World, client: httpx.AsyncClient
) -> None:
    @world.app.get("/broken/{when}")
    async def broken(when: str) -> None:
        raise {
            "later": errors.TooMuch("slow", retry_after=2.5),
            "some-day": errors.TooMuch("full"),
            "soon": errors.TemporaryError("busy"),
        }[when]

    assert (await client.get("/broken/later")).headers["retry-after"] == "3"
    assert "retry-after" not in (await client.get("/broken/some-day")).headers
    assert (await client.get("/broken/soon")).headers["retry-after"] == "1"


async def test_a_defect_is_logged_and_answered_without_its_inside(
    world: World, client: httpx.AsyncClient
) -> None:
    @world.app.get("/broken")
    async def broken() -> None:
        raise ZeroDivisionError("the password is 42")

    with capture_logs() as logs:
        answer = await client.get("/broken")
    assert answer.status_code == 500
    assert "password" not in answer.text
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert (b"X-Service-Version", b"0.6.2") in answer.headers.raw
    [died] = [entry for entry in logs if entry["event"] == "request_died"]
    assert died["id"] == answer.headers["x-request-id"]


async def test_a_client_that_leaves_within_its_body_is_no_defect(world: World) -> None:
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/v1/runs",
        "raw_path": b"/api/v1/runs",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/toml")],
    }

    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect"}

    async def send(message: object) -> None:
        raise AssertionError(message)

    with capture_logs() as logs:
        await world.app(scope, receive, send)
    assert [(one["event"], one["status"]) for one in logs] == [("request", 499)]


async def test_malformed_requests_are_told_field_found_and_expected(
    world: World, client: httpx.AsyncClient
) -> None:
    @world.app.post("/things")
    async def post_thing(thing: Thing, size: int) -> Thing:
        return thing

    answer = await client.post("/things", params={"size": "big"}, json={"number": "many"})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problems = {one["field"]: one for one in answer.json()["problems"]}
    assert set(problems) == {"query.size", "body.number"}
    assert problems["query.size"]["found"] == "'big'"
    assert "integer" in problems["query.size"]["expected"]
    broken = await client.post(
        "/things?size=1", content=b"{", headers={"content-type": "application/json"}
    )
    assert broken.status_code == 422
    assert "JSON" in broken.json()["detail"]


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"number": 1, "size": 0}, "body.size: found 0, expected greater than or equal to 1"),
        ({"size": 1}, "body.number: found nothing, expected a value: it is required"),
        ({"number": 1, "sise": 1}, "body.sise: found 1, expected nothing: there is no such name"),
        ({"number": 1, "name": ""}, "body.name: found '', expected text with at least 1 character"),
        ({"number": 1, "name": 5}, "body.name: found 5, expected a valid string"),
    ],
)
async def test_what_was_expected_reads_as_a_sentence(
    world: World, client: httpx.AsyncClient, sent: dict[str, object], sentence: str
) -> None:
    @world.app.post("/things")
    async def post_thing(thing: StrictThing) -> StrictThing:
        return thing

    answer = await client.post("/things", json=sent)
    assert answer.json()["detail"] == sentence


async def test_of_very_much_that_is_wrong_only_the_beginning_is_told(
    world: World, client: httpx.AsyncClient
) -> None:
    @world.app.post("/things")
    async def post_things(things: list[Thing]) -> list[Thing]:
        return things

    wrong = [{"number": value} for value in ("x" * 10_000, [[1] * 10_000], {"a": "b" * 10_000})]
    answer = await client.post("/things", json=wrong * 100)
    assert answer.status_code == 422
    assert len(answer.json()["problems"]) == 20
    assert len(answer.content) < 20_000


async def test_a_query_of_thousands_of_parameters_is_refused_unread(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.get("/api/v1/runs?" + "&".join(f"a{number}" for number in range(1000)))
    assert answer.status_code == 414
    assert "parameters" in answer.json()["detail"]
    units = "&".join(f"unit=u{number}" for number in range(100))
    assert (await client.get(f"/api/v1/runs/last/logs?{units}")).status_code == 404


async def test_unknown_paths_and_methods_are_problems_too(client: httpx.AsyncClient) -> None:
    missing, wrong = await client.get("/api/v1/nowhere"), await client.put("/api/v1/health")
    assert (missing.status_code, wrong.status_code) == (404, 405)
    assert missing.headers["content-type"] == "application/problem+json"
    assert wrong.headers["content-type"] == "application/problem+json"
    assert wrong.headers["allow"] == "GET"


async def test_the_id_of_a_request_is_the_clients_if_it_is_a_good_one(
    client: httpx.AsyncClient,
) -> None:
    given = await client.get("/api/v1/health", headers={"X-Request-ID": "my.id-1_2"})
    assert given.headers["x-request-id"] == "my.id-1_2"
    for wrong in ("a" * 65, "a b", "ü", ""):
        made = await client.get("/api/v1/health", headers={b"X-Request-ID": wrong.encode()})
        assert re.fullmatch("[0-9a-f]{16}", made.headers["x-request-id"])


async def test_no_answer_may_be_taken_for_another_type(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/v1/nowhere")).headers["x-content-type-options"] == "nosniff"


async def test_the_log_has_no_query_and_no_token(world: World) -> None:
    with capture_logs() as logs:
        async with world.asking("anb_secret") as client:
            await client.get("/api/v1/me?token=anb_other%0aforged")
            await client.get("/forged%0aline")
    [first, second] = [entry for entry in logs if entry["event"] == "request"]
    assert first["path"] == "/api/v1/me"
    assert (first["user"], first["status"]) == ("local", 200)
    assert "anb_" not in str(logs)
    assert "\n" not in second["path"]


async def test_large_answers_are_compressed_for_those_who_want_it(
    world: World, client: httpx.AsyncClient
) -> None:
    @world.app.get("/long")
    async def long(letters: int) -> str:
        return "x" * letters

    small = await client.get("/long", params={"letters": 10})
    large = await client.get("/long", params={"letters": 10_000})
    plain = await client.get("/long", params={"letters": 10_000}, headers={"Accept-Encoding": ""})
    assert "content-encoding" not in small.headers
    assert large.headers["content-encoding"] == "gzip"
    assert int(large.headers["content-length"]) < 1000
    assert "content-encoding" not in plain.headers
    assert large.json() == plain.json()


async def test_a_body_that_is_announced_too_large_is_refused_unread(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.post("/api/v1/runs", content=b"x" * (sizes.LARGEST_BODY + 1))
    assert answer.status_code == 413
    assert str(sizes.LARGEST_BODY) in answer.json()["detail"]


async def test_a_body_that_grows_too_large_is_refused_on_the_way(
    client: httpx.AsyncClient,
) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 10 * sizes.LARGEST_BODY:
            sent += 1024**2
            yield b"x" * 1024**2

    answer = await client.post(
        "/api/v1/tokens", content=endless(), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"
    assert sent <= sizes.LARGEST_BODY + 2 * 1024**2


async def test_who_may_not_make_tokens_cannot_have_much_read_either(guarded: World) -> None:
    secret = (await guarded.token("vic", Role.VIEWER)).secret
    async with guarded.asking(secret) as client:
        wish = {"user": "vic", "role": "admin"}
        assert (await client.post("/api/v1/tokens", json=wish)).status_code == 403
        large = {**wish, "note": "x" * 2**17}
        assert (await client.post("/api/v1/tokens", json=large)).status_code == 413


def test_script_uploads_may_be_larger() -> None:
    assert sizes.limit_of("/api/job/descriptor") > sizes.limit_of("/api/v1/runs")
    assert sizes.limit_of("/api/jobs") == sizes.LARGEST_BODY


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:9999", "127.0.0.1:8080", "127.1.2.3", "[::1]:80", "LOCALHOST."],
)
async def test_loopback_names_are_answered(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/api/v1/me", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "[::2]", "[bad", "a@b"]
)
async def test_a_page_that_points_its_name_at_us_is_refused(
    client: httpx.AsyncClient, host: str
) -> None:
    """DNS rebinding: the browser believes that it talks to the page's own server."""
    assert (await client.get("/api/v1/me", headers={"Host": host})).status_code == 421


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1", 200),
        ("http://127.0.0.1:3000", 403),
        ("https://evil.example", 403),
        ("null", 403),
        ("", 403),
        ("http://[bad", 403),
    ],
)
async def test_a_page_from_elsewhere_is_refused(
    client: httpx.AsyncClient, origin: str, status: int
) -> None:
    answer = await client.get("/api/v1/me", headers={"Origin": origin})
    assert answer.status_code == status


async def test_with_tokens_in_force_any_name_of_ours_will_do(guarded: World) -> None:
    issued = await guarded.token("ada")
    async with guarded.asking(issued.secret, Host="anubis.example") as client:
        assert (await client.get("/api/v1/me")).status_code == 200
        page = await client.get("/api/v1/me", headers={"Origin": "https://evil.example"})
    assert page.status_code == 403  # a browser may have kept Basic credentials
