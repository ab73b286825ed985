"""Find out who asks before anything else is read of a request.

As a layer around the app and not as part of a route: a stranger's body is never read, and no route
can forget it.
"""

from __future__ import annotations

import base64
import binascii
import functools

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from anubis.bootstrap.service import Service
from anubis.domain.access import Principal, Role
from anubis.domain.errors import AnubisError, NotAuthenticated, TemporaryError
from anubis.entrypoints.api import problems
from anubis.stages.access import tokens
from anubis.stages.access.limiting import Limiter, Rate

USER_HEADER = "X-Anubis-User"
"""Who asks, where no tokens are in force: believed, for whoever reaches us there owns the home."""

ANYBODY = "local"

OPEN = frozenset({"/ready", "/lively", "/api/v1/health", "/api/v1/ready"})
"""What may be asked without a token, for those who watch over services."""

FAILURES = Rate(per_second=1.0, burst=20)
"""Wrong tokens from one address. Nobody guesses a secret; this keeps our log and store quiet."""


class Identify:
    """Puts into the state of a request who asks, or answers 401 or 429.

    ``principal`` is who it is, ``is_welcome`` tells whether they still are.
    """

    def __init__(self, app: ASGIApp, *, service: Service) -> None:
        settings, clock = service.settings, service.application.clock
        rate = Rate(per_second=settings.rate_limit, burst=settings.rate_burst)
        self._app = app
        self._service = service
        self._limiter = Limiter(rate, clock)
        self._failures = Limiter(FAILURES, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass with its principal, or answer it."""
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self._app(scope, receive, send)
            return
        try:
            scope["state"]["principal"] = await self._identify(scope)
            scope["state"]["is_welcome"] = functools.partial(self._is_welcome, scope)
        except AnubisError as error:
            response = problems.answer(error, scope["state"]["request_id"])
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _identify(self, scope: Scope) -> Principal:
        headers = Headers(scope=scope)
        if not self._service.requires_tokens:
            named = headers.get(USER_HEADER, "")
            return Principal(user=named if _is_user(named) else ANYBODY, role=Role.ADMIN)
        secret = _secret(headers.get("authorization", ""))
        principal = await self._recognize(secret)
        if principal is None:
            if secret:
                self._failures.take(_address(scope))
            raise NotAuthenticated(_WRONG if secret else _MISSING)
        self._limiter.take(str(principal.token))
        return principal

    async def _recognize(self, secret: str) -> Principal | None:
        access, clock = self._service.access, self._service.application.clock
        return await tokens.recognize(secret, access, clock) if secret else None

    async def _is_welcome(self, scope: Scope) -> bool:
        """Whether who asked this would be let in now too: what does not end asks again."""
        if not self._service.requires_tokens:
            return True
        try:
            secret = _secret(Headers(scope=scope).get("authorization", ""))
            return await self._recognize(secret) is not None
        except TemporaryError:  # nobody knows; who comes back is looked at anew
            return False


_MISSING = "a token is needed: send it as 'Authorization: Bearer TOKEN'"
_WRONG = "this token opens nothing: it is unknown, expired or revoked"


def _is_user(name: str) -> bool:
    return tokens.USER.fullmatch(name) is not None


def _secret(authorization: str) -> str:
    """The token in a header: as it is, or as the password of Basic, which the original client and
    other programs send for ``user:TOKEN@host``.
    """
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            decoded = base64.b64decode(value.strip(), validate=True).decode("utf-8")
        except (binascii.Error, ValueError):
            return ""
        return decoded.partition(":")[2]
    return ""


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""
