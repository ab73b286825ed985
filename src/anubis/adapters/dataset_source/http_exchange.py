"""One request and its answer, by ``http.client``: blocking, for a thread, and stopped by another.

Redirects are followed here, so that each step gets the credentials of its own host and no other.
Proxies are those of the environment (``https_proxy``, ``no_proxy``), authorities those of OpenSSL
(``SSL_CERT_FILE``).
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import http.client
import netrc
import os
import re
import select
import socket
import ssl
import time
import urllib.parse
import urllib.request
from datetime import timedelta
from typing import Final

from anubis.domain.dataset import refuse_secrets, shown
from anubis.domain.errors import DatasetInvalid, SourceUnavailable

MOST_REDIRECTS: Final = 10

PIECE_BYTES: Final = 1024**2
"""Large enough that handing it on costs little beside receiving it."""

LONGEST_WORDS: Final = 200
"""Characters of a server's own words that are repeated to people."""

PIECE_SECONDS: Final = 0.25
"""A slow server's bytes are handed on this often, so that progress shows."""

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_CONTENT_RANGE: Final = re.compile(r"bytes (?:\*|(\d{1,19})-(\d{1,19}))/(\*|\d{1,19})", re.ASCII)
"""Numbers of more digits are sizes of no file."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What the head of an answer says."""

    url: str  #: where it came from at last
    status: int
    reason: str
    total_bytes: int | None  #: of the whole object, not of the part
    body_bytes: int | None  #: of this answer
    is_partial: bool
    etag: str
    modified: str
    encoding: str

    @property
    def is_empty(self) -> bool:
        """An empty object has no first byte to give, and servers say that it has none."""
        return self.status == 416 and self.total_bytes == 0


class Exchange:
    """Used by one thread; ``abort`` may come from any."""

    def __init__(self, place: str, patience: timedelta) -> None:
        self._place = place
        self._patience = patience.total_seconds()
        self._connection: http.client.HTTPConnection | None = None
        self._response: http.client.HTTPResponse | None = None
        self._socket: socket.socket | None = None
        self._is_aborted = False
        self._is_begun = False
        self._memory = memoryview(bytearray(PIECE_BYTES))

    def open(self, url: str, start: int, end: int | None) -> Answer:
        """Ask for the bytes from ``start`` up to ``end``; all of them without a range."""
        headers = {"Accept-Encoding": "identity", "User-Agent": "anubis", "Accept": "*/*"}
        if start != 0 or end is not None:
            headers["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        for _ in range(MOST_REDIRECTS + 1):
            response = self._ask(url, headers)
            if response.status not in _REDIRECTS:
                return _answer(url, response)
            url = self._next(url, response.getheader("Location") or "")
        raise DatasetInvalid(f"{self._place}: more than {MOST_REDIRECTS} redirects")

    def piece(self) -> bytes | memoryview:
        """The next bytes; empty at the end."""
        assert self._response is not None, "opened before"
        try:
            # The first bytes came with the head. Where the body has no length, or several parts,
            # only http.client knows where it ends.
            if not self._is_begun or self._response.chunked or self._response.length is None:
                self._is_begun = True
                return self._response.read1(PIECE_BYTES)
            return self._received(self._response)
        except (OSError, http.client.HTTPException) as error:
            raise self._broken(error) from None

    def _received(self, response: http.client.HTTPResponse) -> memoryview:
        """What comes in a moment, by way of no layer and into the same memory each time: fresh
        pages for every piece cost as much as receiving it.
        """
        assert self._socket is not None, "opened before"
        size, until = 0, time.monotonic() + PIECE_SECONDS
        most = min(PIECE_BYTES, response.length or 0)
        while size < most and (size == 0 or self._has_more(until)):
            count = self._socket.recv_into(self._memory[size:most])
            if count == 0:
                break
            size += count
        response.length = (response.length or 0) - size
        return self._memory[:size]

    def _has_more(self, until: float) -> bool:
        """Whether more comes by then: the next read waits as long as the server's patience."""
        assert self._socket is not None, "opened before"
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return True
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(max(0.0, until - time.monotonic()) * 1000))

    def abort(self) -> None:
        """Close the connection; a thread that waits for bytes is woken by it."""
        self._is_aborted = True
        self._close()

    def _close(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        for opened in (self._response, self._connection):
            if opened is not None:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    opened.close()

    def _ask(self, url: str, headers: dict[str, str]) -> http.client.HTTPResponse:
        self._close()
        try:
            way = _way(url, self._patience)
            self._connection = way.connection
            way.connection.request("GET", way.target, headers=headers | way.headers)
            # Kept, because a connection that will not be used again lets go of its socket.
            self._socket = way.connection.sock
            self._response = way.connection.getresponse()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._close()
            raise self._broken(error) from None
        if self._is_aborted:
            self._close()
        return self._response

    def _next(self, url: str, location: str) -> str:
        try:
            target = urllib.parse.urljoin(url, location)
            parts = urllib.parse.urlsplit(target)
        except ValueError:
            raise self._astray(location) from None
        if parts.scheme not in {"http", "https"} or not location:
            raise self._astray(target)
        try:
            refuse_secrets(target)
        except DatasetInvalid as error:
            raise DatasetInvalid(f"{self._place}: it redirects; {error}") from None
        was_secret = urllib.parse.urlsplit(url).scheme == "https"
        if was_secret and parts.scheme == "http" and _credentials(parts):
            raise DatasetInvalid(
                f"{self._place}: it redirects from https to http, where the password that netrc "
                "has for that host could be read on the way"
            )
        return target

    def _astray(self, target: str) -> DatasetInvalid:
        return DatasetInvalid(f"{self._place}: it redirects to {shown(target)[:LONGEST_WORDS]!r}")

    def _broken(self, error: Exception) -> SourceUnavailable | DatasetInvalid:
        """Foreign words without the URL, which may hold a signature."""
        if isinstance(error, (http.client.InvalidURL, ValueError)) and not isinstance(
            error, OSError
        ):
            return DatasetInvalid(f"{self._place}: this is no URL of a server")
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        words = reason.strip()[:LONGEST_WORDS]
        return SourceUnavailable(f"{self._place}: no answer, or it broke off ({words})")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Way:
    """How a server is asked: directly, or through a proxy."""

    connection: http.client.HTTPConnection
    target: str
    headers: dict[str, str]


def _way(url: str, patience: float) -> _Way:
    parts = urllib.parse.urlsplit(url)
    if not parts.hostname:
        raise ValueError("no host")
    target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
    # What people leave unwritten in URLs, such as a space; what is escaped stays as it is.
    target = urllib.parse.quote(target, safe="/%:=&?~#+!$,;'@()*[]")
    headers = _credentials(parts)
    proxy = _proxy(parts)
    if proxy is None:
        return _Way(connection=_connection(parts, parts, patience), target=target, headers=headers)
    permission = _permission(proxy)
    connection = _connection(parts, proxy, patience)
    if parts.scheme == "https":
        connection.set_tunnel(parts.hostname or "", parts.port or 443, headers=permission)
        return _Way(connection=connection, target=target, headers=headers)
    whole = f"http://{parts.netloc}{target}"
    return _Way(connection=connection, target=whole, headers=headers | permission)


def _connection(
    server: urllib.parse.SplitResult, first: urllib.parse.SplitResult, patience: float
) -> http.client.HTTPConnection:
    """A connection to ``first``, which is the server or its proxy; TLS if the server has it."""
    host, port = first.hostname or "", first.port
    if server.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=patience, context=context)
    return http.client.HTTPConnection(host, port, timeout=patience)


def _proxy(server: urllib.parse.SplitResult) -> urllib.parse.SplitResult | None:
    text = urllib.request.getproxies().get(server.scheme)
    if not text or urllib.request.proxy_bypass(server.netloc):
        return None
    return urllib.parse.urlsplit(text if "://" in text else f"http://{text}")


def _permission(proxy: urllib.parse.SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    user, password = map(urllib.parse.unquote, (proxy.username, proxy.password or ""))
    return {"Proxy-Authorization": _basic(user, password)}


def _credentials(server: urllib.parse.SplitResult) -> dict[str, str]:
    """From ``~/.netrc`` or the file that ``NETRC`` names, if it knows this host."""
    try:
        found = netrc.netrc(os.environ.get("NETRC")).authenticators(server.hostname or "")
    except (OSError, netrc.NetrcParseError, UnicodeDecodeError):
        return {}
    return {"Authorization": _basic(found[0], found[2] or "")} if found else {}


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _answer(url: str, response: http.client.HTTPResponse) -> Answer:
    length = response.length  # None where it is chunked, or ends with the connection
    span = _CONTENT_RANGE.fullmatch(response.getheader("Content-Range") or "")
    total = length
    if response.status in {206, 416}:
        total = int(span[3]) if span and span[3] != "*" else None
    return Answer(
        url=url,
        status=response.status,
        reason=response.reason[:100],
        total_bytes=total,
        body_bytes=length,
        is_partial=response.status == 206 and total is not None,
        etag=response.getheader("ETag") or "",
        modified=response.getheader("Last-Modified") or "",
        encoding=(response.getheader("Content-Encoding") or "").lower()[:LONGEST_WORDS],
    )
