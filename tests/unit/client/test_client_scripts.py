"""Code for runs, sent by the client: only what is missing, and again if nobody answered."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from anubis.client import read_document
from anubis.domain import errors
from anubis.domain.run import RunId
from anubis.testing import builders

from .given import Service, problem, refused, run_shape

NOT_HERE = httpx.Response(404, headers={"Content-Type": "application/problem+json"})
HERE = httpx.Response(204)
TAKEN = httpx.Response(201, json={"name": "x"})


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print(1)")
    return tmp_path / "src"


async def test_code_is_sent_if_it_is_missing(code: Path) -> None:
    service = Service(NOT_HERE, TAKEN)
    async with service.client() as client:
        name = await client.scripts.upload(code)
    asked, sent = service.requests
    assert (asked.method, sent.method) == ("HEAD", "PUT")
    assert asked.url.path == sent.url.path == f"/api/v1/scripts/{name}"
    assert sent.headers["Content-Type"] == "application/x-tar"
    assert b"src/train.py" in sent.content


async def test_nothing_is_sent_that_is_there(code: Path) -> None:
    service = Service(HERE)
    async with service.client() as client:
        await client.scripts.upload(code)
    assert [request.method for request in service.requests] == ["HEAD"]


async def test_an_upload_is_repeated_from_its_start(code: Path) -> None:
    service = Service(NOT_HERE, refused(), problem(503, "store-unavailable", "busy"), TAKEN)
    async with service.client() as client:
        await client.scripts.upload(code)
    _, _, second, third = service.requests
    assert second.content == third.content
    assert b"src/train.py" in third.content


async def test_content_that_can_be_had_but_once_is_sent_once() -> None:
    async def once() -> object:
        yield b"x"

    service = Service(refused())
    async with service.client() as client:
        with pytest.raises(errors.ServiceUnavailable):
            await client.scripts.put("x.tar", aiter(once()))  # type: ignore[arg-type] # a generator
    assert len(service.requests) == 1


async def test_a_refusal_of_an_archive_keeps_its_words(code: Path) -> None:
    service = Service(NOT_HERE, problem(429, "too-much", "script archive finds no room"))
    async with service.client() as client:
        with pytest.raises(errors.TooMuch, match="finds no room"):
            await client.scripts.upload(code)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, errors.NotAuthenticated), (403, errors.NotAllowed), (500, errors.PermanentError)],
)
async def test_a_refusal_without_words_is_told_by_its_status(
    status: int, kind: type[errors.AnubisError]
) -> None:
    headers = {"Content-Type": "application/problem+json"}
    service = Service(httpx.Response(status, headers=headers))
    async with service.client() as client:
        with pytest.raises(kind, match=f"status {status}"):
            await client.scripts.has("x.tar")


async def test_a_service_that_knows_no_code_says_so(code: Path) -> None:
    service = Service(NOT_HERE, problem(404, "about:blank", "Not Found"))
    async with service.client() as client:
        with pytest.raises(errors.UnexpectedAnswer, match="older version"):
            await client.scripts.upload(code)


async def test_a_document_carries_its_code_to_the_service_and_back(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("x = 1\n")
    document = read_document(tmp_path / "a.toml", script="x.tar")
    told = {
        "run": "r",
        "name": document.name,
        "directory": document.directory,
        "script": "x.tar",
        "sha": document.sha,
        "content": "x = 1\n",
    }
    submitted = httpx.Response(201, json={"run": run_shape(), "warnings": []})
    service = Service(submitted, httpx.Response(200, json=told))
    async with service.client() as client:
        await client.submit(document)
        assert await client.document(RunId("r")) == document
    assert service.requests[0].url.params["script"] == "x.tar"


async def test_a_service_of_an_older_version_tells_of_documents_without_code() -> None:
    document = builders.a_document(b"x = 1\n")
    told = {
        "run": "r",
        "name": document.name,
        "directory": document.directory,
        "sha": document.sha,
        "content": "x = 1\n",
    }
    service = Service(httpx.Response(200, json=told))
    async with service.client() as client:
        assert await client.document(RunId("r")) == document
