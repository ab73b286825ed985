"""What clients send is read, or refused with a sentence that says where it is wrong."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anubis.entrypoints.api.legacy import reading, refusing
from anubis.entrypoints.api.legacy.reading import Malformed

TOML = b'spec_version = "0.1.0"\n'


def a_message(payload: dict[str, Any]) -> dict[str, Any]:
    return {
        "message_id": "0d9e6d4f-7a1b-4a5c-9d3e-1f2a3b4c5d6e",
        "client_id": "c" * 40,
        "client_version": "0.6.2",
        "client_sha1": "s" * 40,
        "client_username": "someone",
        "date": "Wed Oct 30 13:17:23 UTC 2019",
        "visited": [{"svc": "anubis-client", "tstamp": 1572441443000, "version": "0.6.2"}],
        "payload": payload,
    }


def a_submission() -> dict[str, Any]:
    toml = {"descriptor_filename": "a.toml", "sha1": "x", "doc": base64.b64encode(TOML).decode()}
    return a_message({"toml": toml})


def a_command() -> dict[str, Any]:
    return a_message({"command": "cancel", "args": {"target_action_id": "t", "cascade": True}})


def sent(message: object) -> bytes:
    return json.dumps(message).encode()


def test_a_submission_is_read() -> None:
    read = reading.submission(sent(a_submission() | {"extra": {"is": "allowed"}}))

    assert (read.client_id, read.filename, read.sha1, read.content) == (
        "c" * 40,
        "a.toml",
        "x",
        TOML,
    )
    assert read.sender["client_username"] == "someone"
    assert read.sender["visited"] == [
        {"svc": "anubis-client", "tstamp": 1572441443000, "version": "0.6.2", "node": None}
    ]


def test_a_command_is_read() -> None:
    read = reading.command(sent(a_command()))

    assert (read.command, read.target, read.cascade) == ("cancel", "t", True)


def test_a_filename_loses_its_folders() -> None:
    message = a_submission()
    message["payload"]["toml"]["descriptor_filename"] = "../../etc/a.toml"

    assert reading.submission(sent(message)).filename == "a.toml"


def changed(path: str, value: object) -> bytes:
    message = a_submission()
    place: Any = message
    *way, last = path.split(".")
    for key in way:
        place = place[key]
    place[last] = value
    return sent(message)


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("message_id", "x", "message_id: found 'x', expected"),
        ("client_id", 7, "client_id: found a number, expected text"),
        ("client_id", "x" * 257, "client_id: expected at most 256 printable characters"),
        ("client_id", "a\nb", "client_id: expected at most 256 printable characters"),
        ("client_username", "\ud800", "client_username: expected at most 256 printable"),
        ("client_version", "1", "client_version: found '1'"),
        ("client_version", "٣.1.1", "client_version: found '٣.1.1'"),
        ("visited", {}, "visited: found an object, expected a list"),
        ("visited", [{}] * 21, "visited: found 21 items, expected 20 at most"),
        ("visited", [7], "visited[0]: found a number, expected an object"),
        ("visited", [{"svc": "a"}], "visited[0].tstamp: found nothing, expected a number"),
        ("visited", [{"svc": "a", "tstamp": True}], "found true or false, expected a number"),
        ("visited", [{"svc": "a", "tstamp": 1e300}], "expected milliseconds since 1970"),
        ("visited", [{"svc": "a", "tstamp": float("nan")}], "expected milliseconds since 1970"),
        ("payload", None, "payload: found nothing, expected an object"),
        ("payload.toml", [], "payload.toml: found a list, expected an object"),
        ("payload.toml.doc", None, "payload.toml.doc: found null, expected text"),
        ("payload.toml.doc", "%%%", "payload.toml.doc: expected base64"),
        ("payload.toml.doc", "ä", "payload.toml.doc: expected base64"),
    ],
)
def test_what_is_wrong_is_named(path: str, value: object, complaint: str) -> None:
    with pytest.raises(Malformed) as caught:
        reading.submission(changed(path, value))

    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"\xff", b"[" * 100_000, b"1" * 5_000, b"null", b"[]", b'"text"', b"7"],
    ids=["nothing", "half", "no text", "too deep", "too long", "null", "list", "text", "number"],
)
@pytest.mark.parametrize("read", [reading.submission, reading.command])
def test_what_is_no_message_is_refused(read: Callable[[bytes], object], text: bytes) -> None:
    with pytest.raises(Malformed):
        read(text)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
PLACES = (
    *a_submission(),
    "payload.toml",
    "payload.toml.doc",
    "payload.toml.sha1",
    "payload.toml.descriptor_filename",
)


@given(st.sampled_from(PLACES), ANYTHING)
def test_whatever_stands_anywhere_is_read_or_refused(path: str, value: object) -> None:
    try:
        read = reading.submission(changed(path, value))
    except Malformed:
        return
    json.dumps(read.sender).encode()


@pytest.mark.parametrize("args", ["text", ["list"], None, {}, {"target_action_id": 7}])
def test_arguments_of_a_command_are_an_object_with_a_target(args: object) -> None:
    message = a_message({"command": "cancel", "args": args})
    with pytest.raises(Malformed, match=r"payload\.args"):
        reading.command(sent(message))


@given(st.binary(min_size=1, max_size=20), st.integers(2, 5))
def test_a_document_that_comes_several_times_is_one(document: bytes, times: int) -> None:
    smallest = reading.once(document)

    assert reading.once(document * times) == smallest
    assert document == smallest * (len(document) // len(smallest))


def test_a_document_is_left_as_it_is() -> None:
    assert reading.once(TOML) == TOML
    assert reading.once(b"") == b""


CLIENTS_ID = re.compile(r"[a-f0-9-]{8}-([a-f0-9-]{4}-){3}[a-f0-9-]{12}")
"""What the original client takes for an id, and with it an answer for a success."""


@pytest.mark.parametrize(
    "text", ["0d9e6d4f-7a1b-4a5c-9d3e-1f2a3b4c5d6e", "-" * 200, "a-" * 99 + "-" * 40]
)
def test_nothing_in_a_refusal_looks_like_an_id(text: str) -> None:
    assert CLIENTS_ID.search(text)
    assert not CLIENTS_ID.search(refusing.harmless(f"no run {text} here"))


def test_a_refusal_without_an_id_is_left_as_it_is() -> None:
    assert refusing.harmless("line 3: a-b, sha1 " + "a" * 40) == "line 3: a-b, sha1 " + "a" * 40
