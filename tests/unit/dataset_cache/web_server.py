"""A real web server on loopback that can be told to behave badly, and remembers what it sent."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PART = 64 * 1024


@dataclasses.dataclass
class Page:
    """What is behind one path, and how the server behaves about it."""

    content: bytes = b""
    etag: str = '"1"'
    has_ranges: bool = True
    has_length: bool = True
    status: int = 200
    location: str = ""
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    extra_length: int = 0  #: by how much Content-Length lies
    cuts: list[int] = dataclasses.field(default_factory=list)
    """After how many bytes each of the next large answers is cut off."""
    pause: float = 0.0  #: seconds after each 64 KiB
    becomes: tuple[bytes, str] | None = None  #: content and ETag from the second large answer on


@dataclasses.dataclass
class Server:
    """Pages, and what was asked and sent."""

    address: str
    pages: dict[str, Page] = dataclasses.field(default_factory=dict)
    asked: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    authorizations: list[str] = dataclasses.field(default_factory=list)
    sent: int = 0  #: bytes of bodies of large answers
    _lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def put(self, path: str, page: Page) -> str:
        """Have a page; its URL."""
        self.pages[path] = page
        return f"{self.address}{path}"

    def count(self, size: int) -> None:
        with self._lock:
            self.sent += size


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    """The server, until it is not needed any more."""

    class Handler(_Handler):
        state: Server

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Handler.state = Server(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield Handler.state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        pass

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.state.asked.append((path, self.headers.get("Range", "")))
        self.state.authorizations.append(self.headers.get("Authorization", ""))
        page = self.state.pages.get(path, Page(status=404))
        if page.location:
            self._head(page, page.status, b"", Location=page.location)
        elif page.status != 200:
            self._head(page, page.status, b"")
        else:
            self._answer(page)

    def _answer(self, page: Page) -> None:
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        body, total = page.content, len(page.content)
        if page.has_ranges and span and total == 0:
            self._head(page, 416, b"", **{"Content-Range": "bytes */0"})
            return
        if page.has_ranges and span:
            start, end = int(span[1]), min(int(span[2] or total - 1), total - 1) + 1
            body = page.content[start:end]
            self._head(page, 206, body, **{"Content-Range": f"bytes {start}-{end - 1}/{total}"})
        else:
            self._head(page, 200, body)
        self._send(page, body)

    def _head(self, page: Page, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, **page.headers}.items():
            self.send_header(name, value)
        if page.etag:
            self.send_header("ETag", page.etag)
        if page.has_length:
            self.send_header("Content-Length", str(len(body) + page.extra_length))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()

    def _send(self, page: Page, body: bytes) -> None:
        is_large = len(body) > 1
        cut = page.cuts.pop(0) if is_large and page.cuts else None
        with contextlib.suppress(ConnectionError):
            for start in range(0, len(body), PART):
                if cut is not None and start >= cut:
                    self.close_connection = True
                    break
                part = body[start : start + PART]
                self.wfile.write(part)
                self.state.count(len(part) if is_large else 0)
                time.sleep(page.pause)
        if is_large and page.becomes:
            page.content, page.etag = page.becomes
            page.becomes = None
        if page.extra_length:
            self.close_connection = True
