"""A server that never ends to give its file, for tests of what stops a transfer."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator

PIECE = b"x" * 65536


class SlowServer(http.server.ThreadingHTTPServer):
    """Gives a large file, a piece of it now and then. Says when it was asked, and left."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked, self.left, self.over = (threading.Event() for _ in range(3))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/large.bin"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: SlowServer

    def do_HEAD(self) -> None:
        self._begin()

    def do_GET(self) -> None:
        self._begin()
        self.server.asked.set()
        try:
            while not self.server.over.wait(0.05):
                self.wfile.write(PIECE)
        except OSError:
            self.server.left.set()

    def _begin(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(2**28))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Stay silent."""


@contextlib.contextmanager
def slowly() -> Iterator[SlowServer]:
    """One that listens, until the end of the context."""
    server = SlowServer()
    thread = threading.Thread(target=server.serve_forever, name="slowly")
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
