"""What every answer carries, and what is kept of every request.

Pure ASGI and outermost: also the answers of the layers within, and those to defects, pass here.
"""

from __future__ import annotations

import itertools
import re
import secrets
import time

import structlog
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import anubis
from anubis.entrypoints.api import problems
from anubis.entrypoints.api.figures import Figures

WIRE_VERSION = "0.6.2"
"""What the original clients compare with their own version, by its first two numbers."""

REQUEST_ID = "X-Request-ID"

GONE = 499
"""How nginx, and our log, call it when the client left before it was answered."""

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

    def __init__(self, app: ASGIApp, *, figures: Figures) -> None:
        self._app = app
        self._figures = figures
        self._log = structlog.get_logger("anubis.api")
        # Chance once and then a number: ids need not be secret, and asking the kernel for each
        # costs a tenth of a small request.
        self._life = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _given_id(scope) or f"{self._life}{next(self._numbers) % 2**32:08x}"
        scope.setdefault("state", {})["request_id"] = request_id
        began = time.perf_counter()
        status = 0

        async def dress(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = [*_FIXED, (b"x-request-id", request_id.encode())]
                message["headers"] = [*message.get("headers", ()), *own]
            await send(message)

        try:
            await self._app(scope, receive, dress)
        except ClientDisconnect:  # in the middle of its body: nobody is there to be answered
            pass
        except Exception:  # noqa: BLE001 - the last resort: a defect is logged and answered
            self._log.exception("request_died", id=request_id, path=_path(scope))
            if not status:
                response = problems.plain(500, problems.DEFECT, request_id)
                await response(scope, receive, dress)
        finally:
            self._keep(scope, status or GONE, time.perf_counter() - began)

    def _keep(self, scope: Scope, status: int, seconds: float) -> None:
        self._figures.note(scope, status, seconds)
        principal = scope["state"].get("principal")
        self._log.info(
            "request",
            id=scope["state"]["request_id"],
            user=principal.user if principal else "",
            method=scope["method"],
            path=_path(scope),
            status=status,
            milliseconds=round(seconds * 1000, 1),
        )


def _given_id(scope: Scope) -> str:
    given = Headers(scope=scope).get(REQUEST_ID, "")
    return given if _GOOD_ID.fullmatch(given) else ""


def _path(scope: Scope) -> str:
    """As it came, percent-encoded, so that nobody writes lines of their own into our log; without
    the query, which may hold what is nobody's business.
    """
    raw: bytes = scope.get("raw_path") or scope["path"].encode("unicode_escape")
    return raw.partition(b"?")[0].decode("ascii", "backslashreplace")
