"""A web server on the node, which counts how often all of its file was sent to pods."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.cluster import layout

CONTENT = b"1,2,3\n" * 4_000_000
"""Larger than what two sockets hold, so that a transfer that was broken off is seen as such."""


class Server:
    """Its address is one that all pods reach."""

    def __init__(self) -> None:
        self.sent = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(CONTENT)))
                self.send_header("ETag", '"1"')
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(CONTENT)
                    outer.sent += 1

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("0.0.0.0", 0), Handler)
        self.uri = f"http://{layout.NODE_ADDRESS}:{self.server.server_port}/train.csv"


@contextlib.contextmanager
def server() -> Iterator[Server]:
    """One that serves for a while."""
    made = Server()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        thread.join()
        made.server.server_close()
