"""The few pages for people who open the service in a browser, and the redirect of old addresses."""

from __future__ import annotations

from html import escape
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

import anubis

MODERN: Final = "/api/v1"
"""Where our own API is: what is unknown there is answered as a problem."""

_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><h1>{title}</h1>{body}</body></html>
"""


def page(title: str, body: str, status: int = 200) -> Response:
    """A page. ``body`` is HTML, ``title`` is text."""
    return HTMLResponse(_PAGE.format(title=escape(title), body=body), status)


def welcome() -> Response:
    """For ``/`` and ``/api``."""
    return page(
        "Anubis",
        f"<p>Anubis {escape(anubis.__version__)} measures machine-learning systems.</p>"
        "<p>The API under /api/v1, described for programs: "
        '<a href="/api/v1/openapi.json">/api/v1/openapi.json</a>. A client for the original wire: '
        '<a href="/api/tools/anubis">/api/tools/anubis</a>.</p>',
    )


def missing() -> Response:
    """For what is not there."""
    return page("Not found", "<p>There is nothing at this address.</p>", 404)


def elsewhere(otherwise: ASGIApp) -> ASGIApp:
    """An answer to what no route answers: the same address without its last slash, or a page that
    says that nothing is there. Under ``MODERN`` it is up to ``otherwise``.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(MODERN):
            await otherwise(scope, receive, send)
        else:
            await _answer(Request(scope))(scope, receive, send)

    return answer


def _answer(request: Request) -> Response:
    # As it was sent: what is encoded in it must stay so.
    path = bytes(request.scope.get("raw_path") or b"/").decode("latin-1")
    # Of several slashes in front, a browser would take what follows for the name of a host.
    shorter = f"/{path.strip('/')}"
    if path != shorter and request.method in ("GET", "HEAD"):
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"{shorter}{query}", 301)
    return missing()
