"""Archives of code over HTTP: asked for, left, and named by submissions."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from anubis.adapters.script_store import inspecting
from anubis.domain.access import Role
from anubis.entrypoints.api import sizes
from anubis.testing.contracts.script_store import a_file, a_link, an_archive

if TYPE_CHECKING:
    from tests.unit.api.conftest import World
else:
    World = Any

ARCHIVE = an_archive(a_file())
NAME = f"{hashlib.sha256(ARCHIVE.content).hexdigest()}.tar"
TOML = """\
spec_version = "0.1.0"
info.description = "For a test"
info.labels = {task_name = "train"}
ml.benchmark_code = "python3 $(BAI_SCRIPTS_PATH)/src/main.py"
"""
TAR = {"Content-Type": "application/x-tar"}


async def put(ada: httpx.AsyncClient, name: str = NAME, **given: Any) -> httpx.Response:
    return await ada.put(
        f"/scripts/{name}", **{"content": ARCHIVE.content, "headers": TAR, **given}
    )


async def test_an_archive_is_left_once(world: World, ada: httpx.AsyncClient) -> None:
    assert (await ada.head(f"/scripts/{NAME}")).status_code == 404
    made = await put(ada)
    assert (made.status_code, made.json()) == (201, {"name": NAME})
    known = await ada.head(f"/scripts/{NAME}")
    assert (known.status_code, known.content) == (204, b"")
    again = await put(ada)
    assert (again.status_code, again.json()) == (200, {"name": NAME})
    assert await world.record() == [("ada", "script.put", NAME, True)]


async def test_the_name_that_the_original_client_gives_is_taken_too(ada: httpx.AsyncClient) -> None:
    assert (await put(ada, ARCHIVE.name)).status_code == 201


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (f"{'0' * 64}.tar", ARCHIVE.content, f"must be called {NAME}"),
        (NAME, ARCHIVE.content[:-1], "cut off on its way"),
        ("train.py", ARCHIVE.content, "expected the SHA-256"),
        (f"{hashlib.sha256(b'x').hexdigest()}.tar", b"x", "no tar archive"),
        (NAME.upper(), ARCHIVE.content, "expected the SHA-256"),
    ],
)
async def test_what_is_no_archive_of_its_name_is_refused(
    ada: httpx.AsyncClient, name: str, content: bytes, said: str
) -> None:
    answer = await put(ada, name, content=content)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert said in answer.json()["detail"]
    assert (await ada.head(f"/scripts/{name}")).status_code == 404


async def test_an_archive_that_leads_out_is_refused(ada: httpx.AsyncClient) -> None:
    archive = an_archive(a_link("src/out", "/etc/passwd"))
    answer = await put(ada, archive.name, content=archive.content)
    assert answer.status_code == 422
    assert "'src/out' is a link out" in answer.json()["detail"]


async def test_a_body_of_another_kind_is_refused(ada: httpx.AsyncClient) -> None:
    kinds = {**TAR, "Content-Encoding": "gzip"}
    assert (await put(ada, headers=kinds)).status_code == 415
    assert (await put(ada, headers={"Content-Type": "application/json"})).status_code == 415
    assert (await put(ada, headers={})).status_code == 201


async def test_a_body_may_be_as_large_as_an_archive_and_no_larger(ada: httpx.AsyncClient) -> None:
    assert sizes.limit_of(f"/api/v1/scripts/{NAME}") == inspecting.MOST_PACKED
    too_large = {**TAR, "Content-Length": str(inspecting.MOST_PACKED + 1)}
    assert (await put(ada, headers=too_large)).status_code == 413


async def test_who_only_looks_may_ask_and_leave_nothing(guarded: World) -> None:
    secret = await guarded.token("vera", Role.VIEWER)
    async with guarded.asking(secret=secret) as vera:
        assert (await vera.head(f"/scripts/{NAME}")).status_code == 404
        answer = await put(vera)
        assert answer.status_code == 403
        assert "needs the role submitter" in answer.json()["detail"]
    async with guarded.asking() as nobody:
        assert (await nobody.head(f"/scripts/{NAME}")).status_code == 401
        assert (await put(nobody)).status_code == 401


async def test_a_submission_names_its_code(world: World, ada: httpx.AsyncClient) -> None:
    await put(ada)
    in_json = await ada.post("/runs", json={"descriptor": TOML, "script": NAME})
    as_it_is = await ada.post(
        "/runs",
        content=TOML,
        headers={"Content-Type": "application/toml"},
        params={"script": NAME},
    )
    for answer in (in_json, as_it_is):
        assert answer.status_code == 201, answer.text
        told = await ada.get(f"/runs/{answer.json()['run']['id']}/descriptor")
        assert told.json()["script"] == NAME
        assert told.json()["content"] == TOML


async def test_code_that_is_not_here_is_refused_by_name(
    world: World, ada: httpx.AsyncClient
) -> None:
    for path in ("/runs", "/schedules"):
        toml = TOML if path == "/runs" else f'info.scheduling = "@daily"\n{TOML}'
        answer = await ada.post(path, json={"descriptor": toml, "script": NAME})
        assert answer.status_code == 422
        assert f"script archive {NAME} is not here" in answer.json()["detail"]
    assert await world.store.counts() == {}


async def test_a_run_is_submitted_again_with_its_code(ada: httpx.AsyncClient) -> None:
    await put(ada)
    first = (await ada.post("/runs", json={"descriptor": TOML, "script": NAME})).json()["run"]
    answer = await ada.post(f"/runs/{first['id']}/resubmit")
    assert answer.status_code == 201, answer.text
    told = await ada.get(f"/runs/{answer.json()['run']['id']}/descriptor")
    assert told.json()["script"] == NAME
