"""Read what a client of the original wire sends. All that may come in is checked here, once.

The original checked against a JSON schema that left room for anything beyond it; so do we, but what
is beyond it is dropped, and nothing may be of any size.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Final, TypedDict

from anubis.domain.errors import UserError

LONGEST_TEXT: Final = 256
"""Characters. The original sends digests of 40 and dates of 28."""

MOST_VISITS: Final = 20
"""Services a message has passed on its way here: one, the client."""

LATEST: Final = 2**53
"""Milliseconds. Beyond, a client that computes with floats could not tell them apart."""

_MESSAGE_ID: Final = re.compile(r"[a-fA-F0-9-]{8}-([a-fA-F0-9-]{4}-){3}[a-fA-F0-9-]{12}")
_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+", re.ASCII)
_ACTION_ID: Final = re.compile(r"[a-f0-9]{8}-([a-f0-9]{4}-){3}[a-f0-9]{12}")


class Malformed(UserError):
    """What was sent is no message of this wire."""


class VisitShape(TypedDict):
    """A service that a message has passed."""

    svc: str
    tstamp: int
    version: str
    node: str | None


class SenderShape(TypedDict):
    """What a message says about who sent it."""

    client_version: str
    client_sha1: str
    client_username: str
    date: str
    visited: list[VisitShape]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Submitted:
    """A descriptor, as it came."""

    client_id: str
    sender: SenderShape
    filename: str  #: without folders
    sha1: str  #: as claimed
    content: bytes


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Commanded:
    """A command, as it came."""

    client_id: str
    sender: SenderShape
    command: str
    target: str
    cascade: bool


def submission(text: bytes) -> Submitted:
    """Read the part ``submit-event``. Raises Malformed."""
    message = _Table(_json(text), "")
    toml = message.table("payload").table("toml")
    return Submitted(
        client_id=message.text("client_id"),
        sender=_sender(message),
        filename=toml.text("descriptor_filename").replace("\\", "/").rpartition("/")[2],
        sha1=toml.text("sha1"),
        content=_decoded(toml),
    )


def command(text: bytes) -> Commanded:
    """Read the body of a command, whatever its media type says. Raises Malformed."""
    message = _Table(_json(text), "")
    payload = message.table("payload")
    arguments = payload.table("args")
    return Commanded(
        client_id=message.text("client_id"),
        sender=_sender(message),
        command=payload.text("command"),
        target=arguments.text("target_action_id"),
        cascade=arguments.flag("cascade"),
    )


def is_action_id(text: str) -> bool:
    """Whether a text can be the id of a run, a schedule or a command."""
    return _ACTION_ID.fullmatch(text) is not None


def once(content: bytes) -> bytes:
    """A document without its repetitions.

    The original client *appends* to the file it recovers a descriptor into, so one that is
    submitted again for the second time comes twice. No valid descriptor is another one repeated:
    its keys would be there twice.
    """
    # The first place, but for the beginning, where the doubled text continues as it began.
    period = (content + content).find(content, 1)
    return content[:period] if 0 < period < len(content) else content


def _sender(message: _Table) -> SenderShape:
    message.text("message_id", _MESSAGE_ID)
    return SenderShape(
        client_version=message.text("client_version", _VERSION),
        client_sha1=message.text("client_sha1"),
        client_username=message.text("client_username"),
        date=message.text("date"),
        visited=[_visit(one) for one in message.tables("visited", MOST_VISITS)],
    )


def _visit(visit: _Table) -> VisitShape:
    return VisitShape(
        svc=visit.text("svc"),
        tstamp=visit.moment("tstamp"),
        version=visit.text("version"),
        node=None,
    )


def _decoded(toml: _Table) -> bytes:
    try:
        return base64.b64decode("".join(toml.long_text("doc").split()), validate=True)
    except (binascii.Error, ValueError):
        raise Malformed("payload.toml.doc: expected base64") from None


def _json(text: bytes) -> object:
    try:
        return json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        # ValueError: no JSON, no UTF-8, or a number of thousands of digits.
        raise Malformed(f"found no JSON ({str(error)[:200]})") from None


class _Table:
    """A JSON object, and where it stands in the message."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, Mapping):
            found = "nothing" if value is None else _kind(value)
            raise Malformed(f"{place or 'the message'}: found {found}, expected an object")
        self._values: Mapping[str, object] = value
        self._place = place

    def table(self, name: str) -> _Table:
        return _Table(self._values.get(name), self._at(name))

    def tables(self, name: str, most: int) -> list[_Table]:
        values = self._values.get(name)
        if not isinstance(values, list):
            raise self._wrong(name, "a list")
        if len(values) > most:
            raise Malformed(f"{self._at(name)}: found {len(values)} items, expected {most} at most")
        return [_Table(value, f"{self._at(name)}[{index}]") for index, value in enumerate(values)]

    def text(self, name: str, form: re.Pattern[str] | None = None) -> str:
        value = self.long_text(name)
        if len(value) > LONGEST_TEXT or not value.isprintable():
            raise Malformed(
                f"{self._at(name)}: expected at most {LONGEST_TEXT} printable characters"
            )
        if form is not None and not form.fullmatch(value):
            raise Malformed(f"{self._at(name)}: found '{value}', expected {form.pattern}")
        return value

    def long_text(self, name: str) -> str:
        value = self._values.get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "text")
        return value

    def moment(self, name: str) -> int:
        value = self._values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, "a number")
        if not 0 <= value <= LATEST:  # which is false for what is no number at all
            raise Malformed(f"{self._at(name)}: expected milliseconds since 1970")
        return int(value)

    def flag(self, name: str) -> bool:
        value = self._values.get(name, False)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def _at(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name

    def _wrong(self, name: str, expected: str) -> Malformed:
        value = self._values.get(name)
        found = _kind(value) if name in self._values else "nothing"
        return Malformed(f"{self._at(name)}: found {found}, expected {expected}")


def _kind(value: object) -> str:
    """How JSON calls what a value is."""
    names = {str: "text", bool: "true or false", int: "a number", float: "a number"}
    names |= {list: "a list", dict: "an object", type(None): "null"}
    return names[type(value)]
