"""Keep web pages out: a browser must not become the hands of a stranger.

Without tokens, whoever reaches the port may do everything. A page in the user's browser can reach
loopback too, directly or through a name that it lets point there (DNS rebinding). So a request must
name a loopback host, and one that names an origin must come from our own.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from anubis.entrypoints.api import problems


class Gate:
    """Refuses requests by their ``Host`` and ``Origin``."""

    def __init__(self, app: ASGIApp, *, requires_tokens: bool) -> None:
        self._app = app
        self._requires_tokens = requires_tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it."""
        if scope["type"] == "http" and (refused := self._refuse(Headers(scope=scope))):
            response = problems.plain(*refused, scope["state"]["request_id"])
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refuse(self, headers: Headers) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self._requires_tokens and not is_loopback(_name(host)):
            return 421, f"Host: found {host!r}, expected localhost or a loopback address"
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            return 403, "requests of web pages from elsewhere are refused (Origin)"
        return None


def is_loopback(host: str) -> bool:
    """Whether a host name or address stays on this machine."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _name(host: str) -> str:
    """The host of ``host:port`` or ``[v6]:port``."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
