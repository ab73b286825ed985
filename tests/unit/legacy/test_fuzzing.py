"""Whatever is sent to the original's routes, the service never answers that it is at fault."""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from tests.unit.legacy.conftest import Wire
else:
    Wire = Any

SETTINGS = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)
IDS = st.sampled_from(
    ["00000000-0000-0000-0000-000000000000", "descriptor", "results", "script", "-" * 36, "me"]
)
PARTS = st.one_of(IDS, st.text(min_size=1, max_size=40)).map(lambda part: quote(part, safe="."))
PATHS = st.one_of(
    st.lists(PARTS, max_size=5).map(lambda parts: "/api/job/" + "/".join(parts)),
    st.lists(PARTS, max_size=3).map(lambda parts: "/" + "/".join(parts)),
    PARTS.map(lambda part: f"/api/tools/{part}"),
    PARTS.map(lambda part: f"/downloads/{part}-latest"),
)
METHODS = st.sampled_from(["GET", "HEAD", "POST", "DELETE", "PUT", "OPTIONS"])
BODIES = st.one_of(st.binary(max_size=200), ANYTHING.map(lambda value: json.dumps(value).encode()))
TYPES = st.sampled_from(
    ["", "application/json", "multipart/form-data", "multipart/form-data; boundary=x", "text/html"]
)
KEYS = ["message_id", "client_id", "visited", "payload", "date", "client_version"]


@given(METHODS, PATHS, st.text(max_size=40), BODIES, TYPES)
@SETTINGS
async def test_any_request_is_answered(
    wire: Wire, method: str, path: str, since: str, body: bytes, kind: str
) -> None:
    answer = await wire.http.request(
        method, path, params={"since": since}, content=body, headers={"content-type": kind}
    )

    assert answer.status_code < 500, answer.text


@given(st.sampled_from(KEYS), ANYTHING)
@SETTINGS
async def test_any_command_is_taken_or_refused(wire: Wire, key: str, value: object) -> None:
    message = wire.message({"command": "cancel", "args": {"target_action_id": "x"}})
    body = json.dumps(message | {key: value})
    answer = await wire.http.request("DELETE", "/api/job/me/x", content=body)

    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 200:
        assert (await wire.http.get(f"/api/job/me/{answer.text}")).status_code < 500


@given(st.sampled_from(["toml", "doc", "sha1", "descriptor_filename"]), ANYTHING)
@SETTINGS
async def test_any_submission_is_taken_or_refused(wire: Wire, key: str, value: object) -> None:
    toml: dict[str, Any] = {"descriptor_filename": "a", "sha1": "b", "doc": "Yw=="}
    payload: dict[str, Any] = {"toml": value} if key == "toml" else {"toml": toml | {key: value}}
    files = {"submit-event": (None, json.dumps(wire.message(payload)))}
    answer = await wire.http.post("/api/job/descriptor", files=files)

    assert answer.status_code == 400, answer.text


DOC = base64.b64encode(
    b'spec_version = "0.1.0"\ninfo.description = "d"\nml.benchmark_code = "true"\n'
).decode()
NAMES = st.text(string.ascii_letters + "äß\"'\\ <>&$()*\t", max_size=20)


@given(NAMES, NAMES, st.binary(max_size=50))
@SETTINGS
async def test_any_name_of_person_file_or_script_is_taken_or_refused(
    wire: Wire, user: str, filename: str, script: bytes
) -> None:
    message = wire.message({"toml": {"descriptor_filename": filename, "sha1": "", "doc": DOC}})
    message["client_username"] = user
    event = {"submit-event": (None, json.dumps(message))}
    upload = {"script": (filename or "x", script)}
    refused = await wire.http.post("/api/job/descriptor", files={**event, **upload})
    answer = await wire.http.post("/api/job/descriptor", files=event)

    assert refused.status_code == 400
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 200:
        assert (await wire.http.get(f"/api/job/me/{answer.text}")).status_code == 200


@pytest.mark.parametrize(
    "damage", [lambda text: text[:-20], lambda text: text.replace(b"\r\n", b"\n")]
)
async def test_a_form_that_is_damaged_on_its_way_is_refused(
    wire: Wire, damage: Callable[[bytes], bytes]
) -> None:
    request = wire.http.build_request(
        "POST", "/api/job/descriptor", files={"submit-event": (None, "{}")}
    )
    body = damage(await request.aread())
    headers = {"content-type": request.headers["content-type"]}
    answer = await wire.http.post("/api/job/descriptor", content=body, headers=headers)

    assert answer.status_code == 400
