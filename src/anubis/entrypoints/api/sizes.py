"""How large a request may be: its body, and the number of its parameters.

A body is judged by its announced length where there is one, and while it streams in any case.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anubis.entrypoints.api import problems

LARGEST_BODY = 16 * 1024**2
"""Bytes. A thousand times a long descriptor."""

LARGER: Mapping[str, int] = {"/api/job/descriptor": 256 * 1024**2}
"""Paths that take more: the original clients send the archive of their scripts there."""


LARGER_BELOW: Mapping[str, int] = {"/api/v1/scripts/": 256 * 1024**2}
"""The same for all paths that begin so: each archive has one of its own."""

SMALLER: Mapping[str, int] = {"/api/v1/tokens": 64 * 1024}
"""Paths that take less: what is sent there is read before it is known whether the asker may."""

MOST_PARAMETERS = 250
"""In a query. A hundred names of programs are the most that anybody may ask for; checking thousands
takes seconds, in which nobody else is answered."""


class SizeLimit:
    """Answers 413 to bodies that are too large, 414 to queries that are."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with a body that ends before it gets too large."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["query_string"].count(b"&") >= MOST_PARAMETERS:
            text = f"the query is too long: expected at most {MOST_PARAMETERS} parameters"
            response = problems.plain(414, text, scope["state"]["request_id"])
            await response(scope, receive, send)
            return
        limit = limit_of(scope["path"])
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdigit() and int(announced) > limit:
            response = problems.plain(413, _text(limit), scope["state"]["request_id"])
            await response(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise HTTPException(413, _text(limit))
            return message

        await self._app(scope, counted, send)


def limit_of(path: str) -> int:
    """Bytes that a request for this path may bring."""
    for start, limit in LARGER_BELOW.items():
        if path.startswith(start):
            return limit
    return LARGER.get(path) or SMALLER.get(path, LARGEST_BODY)


def _text(limit: int) -> str:
    return f"the body is too large: expected at most {limit} bytes"
