"""What every answer carries, and what is kept of every request.

Pure ASGI and outermost: also the answers of the layers within, and those to defects, pass here.
"""

from __future__ import annotations

import re
import secrets
import time

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import anubis
from anubis.entrypoints.api import problems

WIRE_VERSION = "0.6.2"
"""What the original clients compare with their own version, by its first two numbers."""

REQUEST_ID = "X-Request-ID"

_GOOD_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class ExactCase(bytes):
    """A header name that keeps its case: the original client looks for these very letters.

    uvicorn writes ``name.lower()``; a test over a real socket holds that this is enough.
    """

    __slots__ = ()

    def lower(self) -> bytes:
        """The name as it is."""
        return self


_FIXED: tuple[tuple[bytes, bytes], ...] = (
    (ExactCase(b"X-Service-Version"), WIRE_VERSION.encode()),
    (b"x-anubis-version", anubis.__version__.encode()),
    (b"x-content-type-options", b"nosniff"),
)


class Envelope:
    """Gives each request an id and each answer our headers; no defect leaves as a bare 500."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._log = structlog.get_logger("anubis.api")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        started = time.perf_counter()
        status = 0

        async def dress(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", request_id.encode()),
                    *_FIXED,
                ]
            await send(message)

        try:
            await self._app(scope, receive, dress)
        except Exception:  # noqa: BLE001 - the last resort: a defect is logged and answered
            self._log.exception("request_died", request=request_id, path=scope["path"])
            if not status:
                response = problems.plain(500, problems.DEFECT, request_id)
                await response(scope, receive, dress)
        finally:
            elapsed = time.perf_counter() - started
            self._log.info(
                "request",
                id=request_id,
                method=scope["method"],
                path=scope["path"],
                status=status,
                milliseconds=round(elapsed * 1000, 1),
            )


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get(REQUEST_ID, "")
    return given if _GOOD_ID.fullmatch(given) else secrets.token_hex(8)
