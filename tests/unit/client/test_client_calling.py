"""What is safe is tried again, what is not is not; errors arrive as they were raised."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest

from anubis.client import Client, Wishes, transport
from anubis.domain import errors
from anubis.domain.access import Role
from anubis.domain.problem import Problem
from anubis.domain.run import RunId, RunState
from anubis.domain.schedule import ScheduleId
from anubis.ports.history import TrendQuery
from anubis.ports.run_reader import RunQuery
from anubis.stages.presentation import shapes
from anubis.testing import builders

from .given import Service, a_run_answer, problem, refused, run_shape

RUN_ID = builders.a_run_id()
AWAY = [
    refused(),
    httpx.ReadError("connection reset"),
    httpx.RemoteProtocolError("peer closed connection"),
    httpx.Response(502, text="<html>bad gateway"),
    httpx.Response(504, text=""),
    problem(503, "store-unavailable", "busy", headers={"Retry-After": "1"}),
]


@pytest.mark.parametrize("trouble", AWAY, ids=lambda one: type(one).__name__)
async def test_a_question_is_repeated_until_it_is_answered(trouble: httpx.Response) -> None:
    service = Service(trouble, trouble, a_run_answer())
    async with service.client() as client:
        assert (await client.get(RUN_ID)).id == RUN_ID
    assert len(service.requests) == 3


async def test_pauses_grow_and_patience_ends() -> None:
    service = Service(refused())
    async with service.client() as client:
        with pytest.raises(
            errors.ServiceUnavailable, match=r"service\.test:8080 .*ANUBIS_ENDPOINT"
        ):
            await client.get(RUN_ID)
    pauses = service.clock.pauses
    assert len(pauses) >= 4
    assert sum(pauses) <= 5
    assert all(0.5 * 0.1 * 2**n <= pause <= 0.1 * 2**n for n, pause in enumerate(pauses[:4]))


async def test_a_repeated_submission_has_one_key() -> None:
    created = httpx.Response(201, json={"run": run_shape(), "warnings": []})
    service = Service(refused(), httpx.ReadError("lost"), created)
    async with service.client() as client:
        submitted = await client.submit(builders.a_document())
        await client.submit(builders.a_document())
    assert submitted.run.id == RUN_ID
    first, second, third, other = (one.headers["Idempotency-Key"] for one in service.requests)
    assert first == second == third != other


async def test_a_submission_carries_the_very_bytes_and_the_wishes() -> None:
    service = Service(httpx.Response(201, json={"run": run_shape(), "warnings": []}))
    document = builders.a_document(b"\xff\r\n", name="a b.toml", directory="/x/y")
    async with service.client(token="anb_s", user="ann") as client:
        await client.submit(document, Wishes(engine="process", priority=3, now=True, key="k"))
    [request] = service.requests
    assert request.content == b"\xff\r\n"
    assert str(request.url.params) == (
        "name=a+b.toml&directory=%2Fx%2Fy&engine=process&priority=3&now=true"
    )
    assert request.headers["Idempotency-Key"] == "k"
    assert request.headers["Content-Type"] == "application/toml"
    assert request.headers["Authorization"] == "Bearer anb_s"
    assert "anb_s" not in str(request.url)


async def test_a_token_may_come_with_the_end_of_its_line() -> None:
    service = Service(a_run_answer())
    async with service.client(token=" anb_s\r\n") as client:
        await client.get(RUN_ID)
    assert service.requests[0].headers["Authorization"] == "Bearer anb_s"


@pytest.mark.parametrize("token", ["anb_s\nx", "anb_s x", "anb_s\x00", "anb_sé"])
def test_what_is_no_token_is_refused_without_being_repeated(token: str) -> None:
    with pytest.raises(errors.UserError, match="expected one word") as refused:
        Service().client(token=token)
    assert "anb_s" not in str(refused.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.tokens.create("ann", Role.VIEWER),
        lambda client: client.schedules.run_now(ScheduleId("s")),
    ],
)
async def test_what_could_be_done_twice_is_tried_once(
    call: Callable[[Client], Awaitable[object]],
) -> None:
    service = Service(refused())
    async with service.client() as client:
        with pytest.raises(errors.ServiceUnavailable):
            await call(client)
    assert len(service.requests) == 1


@pytest.mark.parametrize("status", [200, 404, 500])
async def test_an_answer_without_end_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(transport, "LARGEST_ANSWER", 10_000)
    monkeypatch.setattr(transport, "LARGEST_REFUSAL", 10_000)
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b" " * 1000

    service = Service(lambda _: httpx.Response(status, content=endless()))
    async with service.client() as client:
        with pytest.raises(errors.UnexpectedAnswer, match="more than 10,000 bytes"):
            await client.get(RUN_ID)
    assert sent == 11


async def test_a_limit_is_waited_for_when_that_is_soon() -> None:
    soon = problem(429, "too-much", "slowly", headers={"Retry-After": "2"})
    service = Service(soon, a_run_answer())
    async with service.client() as client:
        await client.get(RUN_ID)
    assert service.clock.pauses == [2.0]


@pytest.mark.parametrize(("headers", "after"), [({"Retry-After": "3600"}, 3600.0), ({}, None)])
async def test_a_limit_that_stays_is_said(headers: dict[str, str], after: float | None) -> None:
    service = Service(problem(429, "too-much", "slowly", headers=headers))
    async with service.client() as client:
        with pytest.raises(errors.TooMuch, match="slowly") as raised:
            await client.get(RUN_ID)
    assert raised.value.retry_after == after
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("status", "name", "kind"),
    [
        (404, "run-not-found", errors.RunNotFound),
        (404, "schedule-not-found", errors.ScheduleNotFound),
        (409, "run-ambiguous", errors.RunAmbiguous),
        (409, "schedule-ambiguous", errors.ScheduleAmbiguous),
        (409, "not-possible", errors.NotPossible),
        (422, "user-error", errors.UserError),
        (401, "not-authenticated", errors.NotAuthenticated),
        (403, "not-allowed", errors.NotAllowed),
        (500, "permanent-error", errors.PermanentError),
        (500, "made-up-later", errors.PermanentError),
        (422, "made-up-later", errors.UserError),
        (413, "about:blank", errors.UserError),
    ],
)
async def test_an_error_arrives_as_it_was_raised(
    status: int, name: str, kind: type[errors.AnubisError]
) -> None:
    service = Service(problem(status, name, "what happened"))
    async with service.client() as client:
        with pytest.raises(kind, match="what happened") as raised:
            await client.get(RUN_ID)
    assert type(raised.value) is kind
    assert len(service.requests) == 1


async def test_the_problems_of_a_descriptor_arrive_one_by_one() -> None:
    one = Problem(file="f", line=1, column=2, field="a", found="x", expected="y")
    invalid = problem(422, "descriptor-invalid", "…", problems=[shapes.problem_shape(one)])
    service = Service(invalid)
    async with service.client() as client:
        with pytest.raises(errors.DescriptorInvalid) as raised:
            await client.submit(builders.a_document())
    assert raised.value.problems == (one,)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(404, text="<html>nginx"),
        httpx.Response(200, text="<html>welcome"),
        httpx.Response(200, json={"hello": "world"}),
        httpx.Response(302, headers={"Location": "http://elsewhere"}),
        httpx.Response(200, content=b"[" * 100_000),
        problem(404, "about:blank", "Not Found", type="about:blank"),
    ],
)
async def test_another_program_on_the_port_is_recognised(answer: httpx.Response) -> None:
    service = Service(answer)
    async with service.client(token="anb_s") as client:
        with pytest.raises(errors.UnexpectedAnswer, match="something unexpected"):
            await client.get(RUN_ID)
    assert len(service.requests) == 1


async def test_a_service_that_hangs_up_may_want_encryption() -> None:
    service = Service(httpx.RemoteProtocolError("Server disconnected without sending a response."))
    async with service.client() as client:
        with pytest.raises(errors.ServiceUnavailable, match=r"https://service\.test:8080 if it"):
            await client.health()


async def test_a_cancel_that_was_heard_but_not_answered_is_no_error() -> None:
    ended = builders.a_run()
    service = Service(httpx.ReadError("lost"), problem(409, "not-possible", "over"), a_run_answer())
    async with service.client() as client:
        assert await client.cancel(RUN_ID) == ended
    once = Service(problem(409, "not-possible", "it has ended"))
    async with once.client() as client:
        with pytest.raises(errors.NotPossible, match="it has ended"):
            await client.cancel(RUN_ID)


async def test_a_purge_is_asked_for_until_it_is_done() -> None:
    gone = problem(404, "run-not-found", "gone")
    service = Service(httpx.Response(202), httpx.ReadError("lost"), gone)
    async with service.client() as client:
        await client.purge(RUN_ID)
    assert [one.method for one in service.requests] == ["DELETE"] * 3
    unknown = Service(gone)
    async with unknown.client() as client:
        with pytest.raises(errors.RunNotFound):
            await client.purge(RUN_ID)


async def test_long_lists_are_asked_for_page_by_page() -> None:
    runs = [builders.a_run(number) for number in range(700)]

    def answer(request: httpx.Request) -> httpx.Response:
        start = int(request.url.params.get("cursor", "0"))
        end = start + int(request.url.params["limit"])
        following = str(end) if end < len(runs) else None
        page = [run_shape(run) for run in runs[start:end]]
        return httpx.Response(200, json={"runs": page, "next": following})

    service = Service(answer)
    async with service.client() as client:
        query = RunQuery(
            states=[RunState.FAILED, RunState.ERROR], limit=600, labels=[("a", "b=c"), ("d", "e")]
        )
        assert await client.page(query) == runs[:600]
        assert len(await client.page(RunQuery(limit=10_000))) == 700
    first = service.requests[0].url.params
    assert first.get_list("state") == ["FAILED", "ERROR"]
    assert first.get_list("label") == ["a=b=c", "d=e"]
    assert [one.url.params["limit"] for one in service.requests[:2]] == ["500", "100"]


async def test_a_descriptor_that_is_no_text_comes_in_its_own_bytes() -> None:
    document = builders.a_document(b"x = \xff\n")

    def answer(request: httpx.Request) -> httpx.Response:
        if request.headers["Accept"] == "application/toml":
            return httpx.Response(200, content=document.content)
        return httpx.Response(200, json=shapes.document_shape(RUN_ID, document))

    service = Service(answer)
    async with service.client() as client:
        assert await client.document(RUN_ID) == document


@pytest.mark.parametrize("reference", ["", "counts", "../me", "zzz", "a/b", ".."])
async def test_what_cannot_name_a_run_is_not_even_asked(reference: str) -> None:
    service = Service(a_run_answer())
    async with service.client() as client:
        with pytest.raises(errors.RunNotFound, match="names no run"):
            await client.resolve(reference)
    assert service.requests == []


async def test_odd_names_stay_one_part_of_a_path() -> None:
    service = Service(httpx.Response(200, json={"points": [], "next": None}), a_run_answer())
    async with service.client() as client:
        await client.trend(TrendQuery(benchmark="a/b ?#é", metric="loss"))
        await client.get(RunId(".."))
    assert service.requests[0].url.raw_path.startswith(b"/api/v1/benchmarks/a%2Fb%20%3F%23%C3%A9/t")
    assert service.requests[1].url.raw_path == b"/api/v1/runs/%2E%2E"


@pytest.mark.parametrize(
    ("user", "sent"), [("ann", "ann"), ("uid 7", "uid-7"), ("é" * 99, "-" * 64)]
)
async def test_who_asks_is_said_where_there_are_no_tokens(user: str, sent: str) -> None:
    service = Service(a_run_answer())
    async with service.client(user=user) as client:
        await client.get(RUN_ID)
    [request] = service.requests
    assert request.headers["X-Anubis-User"] == sent
    assert re.fullmatch(r"anubis/[0-9.]+", request.headers["User-Agent"])


async def test_an_environment_that_is_not_known_yet_is_none() -> None:
    service = Service(httpx.Response(200, content=b"null"))
    async with service.client() as client:
        assert await client.fingerprint(RUN_ID) is None
