"""The messages of the original wire: the envelope around each, and what is in it.

``tstamp`` of a message is always that of its last visit: the client makes ``since`` out of the one,
the server out of the other.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from typing import Final, NotRequired, TypedDict, Union, final

from anubis.entrypoints.api.legacy import words
from anubis.entrypoints.api.legacy.paging import Placed, message_id
from anubis.entrypoints.api.legacy.reading import SenderShape, VisitShape
from anubis.entrypoints.api.legacy.words import Speaker

STATUS_TOPIC: Final = "BAI_APP_STATUS"
RETURN_TOPIC: Final = "CMD_RETURN"
SUBMISSION_TOPIC: Final = "BAI_APP_BFF"
COMMAND_TOPIC: Final = "CMD_SUBMIT"

LARGE: Final = 64 * 1024
"""Bytes. A larger document is not repeated in the ``src_event`` of each of twelve messages."""

# A recursive alias cannot use "|" with a forward reference before Python 3.12.
Json = Union[  # noqa: UP007
    str, int, float, bool, None, Sequence["Json"], Mapping[str, "Json"]
]


class TomlShape(TypedDict):
    """A descriptor on this wire."""

    descriptor_filename: str
    sha1: str
    verified: bool
    doc: NotRequired[str]
    contents: NotRequired[Json]


@final
class SubmissionShape(TypedDict):
    """What was submitted, and what the service found in it."""

    toml: TomlShape
    datasets: list[dict[str, Json]]
    models: list[dict[str, Json]]
    scripts: list[dict[str, Json]]


@final
class CommandShape(TypedDict):
    """A command."""

    command: str
    args: dict[str, Json]


class PayloadShape(TypedDict):
    """What a message says."""

    message: str
    status: NotRequired[str]
    toml: NotRequired[TomlShape]
    srv_event: NotRequired[SubmissionShape | CommandShape]
    src_event: NotRequired[EventShape]
    return_code: NotRequired[int]
    return_value: NotRequired[object]
    cmd_submit: NotRequired[EventShape]
    reason: NotRequired[str]  #: from here on, what the original did not tell
    exit_code: NotRequired[int | None]
    signal: NotRequired[int | None]


class EventShape(TypedDict):
    """A message with its envelope."""

    action_id: str
    parent_action_id: str | None
    message_id: str
    client_id: str
    client_version: str
    client_username: str
    client_sha1: NotRequired[str]
    date: NotRequired[str]
    authenticated: bool
    tstamp: int
    visited: list[VisitShape]
    type: str
    payload: PayloadShape | SubmissionShape | CommandShape


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """The message that began an action: each later one carries its envelope on."""

    action_id: str
    parent_action_id: str | None
    client_id: str
    sender: SenderShape
    tstamp: int
    payload: SubmissionShape | CommandShape
    brief: SubmissionShape | CommandShape  #: the payload where it is repeated
    node: str

    @property
    def topic(self) -> str:
        """Of the message itself."""
        return COMMAND_TOPIC if "command" in self.payload else SUBMISSION_TOPIC


def submission(
    document: bytes, filename: str, sha1: str, *, verified: bool
) -> tuple[SubmissionShape, SubmissionShape]:
    """What a document looks like here, in full and where it is repeated.

    The document is known to be valid, or was when it was taken.
    """
    contents = _contents(document)
    toml = TomlShape(descriptor_filename=filename, sha1=sha1, verified=verified)
    data, server, code = (contents.get(name) for name in ("data", "server", "ml"))
    short = SubmissionShape(
        toml=toml,
        datasets=_items(data, "sources"),
        models=_items(server, "models"),
        scripts=_scripts(code),
    )
    doc = base64.b64encode(document).decode()
    whole = SubmissionShape(
        toml={**toml, "doc": doc, "contents": _plain(contents)},
        datasets=short["datasets"],
        models=short["models"],
        scripts=short["scripts"],
    )
    return whole, short if len(document) > LARGE else whole


def has_data(document: bytes) -> bool:
    """Whether a document names datasets or models."""
    contents = _contents(document)
    return bool(_items(contents.get("data"), "sources") or _items(contents.get("server"), "models"))


def _contents(document: bytes) -> dict[str, object]:
    try:
        return tomllib.loads(document.decode("utf-8-sig").replace("\r\n", "\n"))
    except (ValueError, RecursionError):  # taken by an earlier version that could read it
        return {}


def event(origin: Origin, message: Placed, *, is_first: bool) -> EventShape:
    """One message. The first of an action shows the descriptor, which the original forgot: without
    it a client can neither show what it submitted nor submit it again.
    """
    line = message.line
    payload = PayloadShape(message=words.plain(line.text))
    if line.status is not None:
        payload["status"] = line.status.value
        _add_source(payload, origin, line.speaker)
    if line.returned is not None:
        payload["return_code"] = line.returned.code
        payload["return_value"] = line.returned.value
        payload["cmd_submit"] = _source(origin)
    if line.outcome is not None:
        payload["reason"] = line.outcome.reason
        payload["exit_code"] = line.outcome.exit_code
        payload["signal"] = line.outcome.signal
    if is_first and "toml" in origin.payload:
        payload["toml"] = origin.payload["toml"]
    shape = _envelope(origin, message.message_id, message.tstamp)
    shape["payload"] = payload
    shape["type"] = STATUS_TOPIC if line.status is not None else RETURN_TOPIC
    here = [_visit(line.speaker, message.tstamp, origin.node)]
    if line.speaker is Speaker.BFF:
        shape["visited"] = [*_source(origin)["visited"], *here]
        shape["client_sha1"] = origin.sender["client_sha1"]
        shape["date"] = origin.sender["date"]
    else:
        shape["visited"] = here
    return shape


def _add_source(payload: PayloadShape, origin: Origin, speaker: Speaker) -> None:
    """The first service shows what it was given, under a name of its own; the others the whole
    message that they acted on.
    """
    if speaker is Speaker.BFF:
        payload["srv_event"] = origin.payload
    else:
        payload["src_event"] = _source(origin)


def _source(origin: Origin) -> EventShape:
    """The message that began the action, as the first service sent it on."""
    shape = _envelope(origin, message_id(origin.action_id, "source"), origin.tstamp)
    shape["client_sha1"] = origin.sender["client_sha1"]
    shape["date"] = origin.sender["date"]
    shape["type"] = origin.topic
    shape["payload"] = origin.brief
    shape["visited"] = [
        *origin.sender["visited"],
        _visit(Speaker.BFF, origin.tstamp, origin.node),
    ]
    return shape


def _envelope(origin: Origin, name: str, tstamp: int) -> EventShape:
    return EventShape(
        action_id=origin.action_id,
        parent_action_id=origin.parent_action_id,
        message_id=name,
        client_id=origin.client_id,
        client_version=origin.sender["client_version"],
        client_username=origin.sender["client_username"],
        authenticated=False,  # as ever on this wire; tokens are checked before it
        tstamp=tstamp,
        visited=[],
        type="",
        payload=origin.brief,
    )


def _visit(speaker: Speaker, tstamp: int, node: str) -> VisitShape:
    return VisitShape(svc=speaker, tstamp=tstamp, version=words.VERSIONS[speaker], node=node)


def _items(table: object, name: str) -> list[dict[str, Json]]:
    """What of each item is fetched, from where and to where."""
    values = table.get(name) if isinstance(table, Mapping) else None
    if not isinstance(values, list):
        return []
    return [
        {key: _plain(item[key]) for key in ("src", "md5", "id", "path") if key in item}
        for item in values
        if isinstance(item, Mapping)
    ]


def _scripts(code: object) -> list[dict[str, Json]]:
    table = code.get("script") if isinstance(code, Mapping) else None
    if not isinstance(table, Mapping):
        return []
    return [{"dst": f"anubis0/{value}"} for value in table.values()]


def _plain(value: object) -> Json:
    """A value of TOML in JSON, which knows no dates and no infinity."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    assert value is None or isinstance(value, str | int | float | bool)
    return value
