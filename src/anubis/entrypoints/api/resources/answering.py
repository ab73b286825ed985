"""Answers: JSON as our shapes give it, tags that say whether something changed, and pages."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from fastapi import Request
from starlette.responses import Response

from anubis.stages.presentation import shapes

JSON: Final = "application/json"

T = TypeVar("T")


class Json(Response):
    """A shape as JSON. FastAPI's own way from dictionaries to text takes twice as long."""

    media_type = JSON

    def render(self, content: Any) -> bytes:
        """The text."""
        return encoded(content)


def encoded(value: object) -> bytes:
    """A shape as JSON text. Halves of surrogate pairs, which no text can hold, are replaced."""
    return _ENCODER.encode(value).encode("utf-8", "replace")


# Made once: json.dumps makes one for every call that wants anything unusual, and output has lines.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def page(found: Sequence[T], limit: int) -> tuple[Sequence[T], T | None]:
    """Of one more than asked for: those asked for, and their last one if there are more."""
    if len(found) <= limit:
        return found, None
    return found[:limit], found[limit - 1]


def tagged_run(request: Request, run: shapes.RunShape) -> Response:
    """A run, or 304 if the client has seen it. What a run waits for changes without its version."""
    waiting = zlib.crc32((run["waiting_for"] or "").encode("utf-8", "replace"))
    return tagged(request, run, f'"{run["id"]}-{run["version"]}-{waiting:x}"')


def tagged(request: Request, value: object, tag: str) -> Response:
    """Something whose version has a name, or 304 if the client has seen it."""
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if _is_known(request.headers, tag):
        return Response(status_code=304, headers=headers)
    return Json(value, headers=headers)


def _is_known(headers: Mapping[str, str], tag: str) -> bool:
    known = (one.strip().removeprefix("W/") for one in headers.get("If-None-Match", "").split(","))
    return any(one in (tag, "*") for one in known)


def preferred(request: Request, offered: Sequence[str]) -> str:
    """The media type that the client likes best; the first one if it likes none of them."""
    wishes = [_wish(part) for part in request.headers.get("Accept", "").split(",")]
    liked = {kind: _quality(wishes, kind) for kind in offered}
    best = max(offered, key=lambda kind: liked[kind])
    return best if liked[best] > 0 else offered[0]


def _wish(part: str) -> tuple[str, float]:
    kind, *parameters = (one.strip() for one in part.split(";"))
    weights = [one[2:] for one in parameters if one.startswith("q=")]
    try:
        return kind.lower(), float(weights[0]) if weights else 1.0
    except ValueError:
        return kind.lower(), 0.0


def _quality(wishes: Sequence[tuple[str, float]], kind: str) -> float:
    """How much a media type is wished for: the most exact wish counts."""
    given = dict(wishes)
    for wish in (kind, f"{kind.partition('/')[0]}/*", "*/*"):
        if wish in given:
            return given[wish]
    return 0.0
