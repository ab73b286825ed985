"""Keep errors out of the answers to a client that polls.

The original client looks at no status. Whatever comes back it takes for messages and files away, so
a problem document (a token that has expired, too many requests, a store that is busy) would spoil
what it keeps of the action for good. An answer without a body it passes over, and asks again.
"""

from __future__ import annotations

import re
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLLED: Final = re.compile(r"/api/job/[^/]+/[^/]+")
_FIRST_ERROR: Final = 400


class Quiet:
    """Takes the body from errors on the route that is polled."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_polled = scope["type"] == "http" and scope["method"] == "GET"
        if not is_polled or not _POLLED.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        is_error = False

        async def quiet(message: Message) -> None:
            nonlocal is_error
            if message["type"] == "http.response.start":
                is_error = message["status"] >= _FIRST_ERROR
                if is_error:
                    message = {**message, "headers": _without_body(message["headers"])}
            elif message["type"] == "http.response.body" and is_error:
                message = {**message, "body": b""}
            await send(message)

        await self._app(scope, receive, quiet)


def _without_body(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    kept = [(name, value) for name, value in headers if name.lower() not in _ABOUT_BODIES]
    return [*kept, (b"content-length", b"0")]


_ABOUT_BODIES: Final = frozenset({b"content-length", b"content-type"})
