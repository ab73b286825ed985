"""A server on loopback that answers what no good server would."""

from __future__ import annotations

import contextlib
import dataclasses
import http.server
import socket
import threading
from collections.abc import Callable, Iterator

Answer = tuple[int, bytes]


@dataclasses.dataclass(kw_only=True, slots=True)
class FalseServer:
    """Ask ``requests`` what it was asked."""

    endpoint: str
    requests: list[str]


@contextlib.contextmanager
def answering(answer: Callable[[str, str], Answer]) -> Iterator[FalseServer]:
    """An HTTP server that gives what ``answer`` says to a method and a path."""
    requests: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def _reply(self) -> None:
            requests.append(f"{self.command} {self.path}")
            status, body = answer(self.command, self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", '"1"')
            self.send_header("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = _reply  # noqa: N815 - names of the library

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            endpoint = f"http://127.0.0.1:{server.server_port}"
            yield FalseServer(endpoint=endpoint, requests=requests)
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def silent() -> Iterator[int]:
    """The port of a server that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def an_s3_listing(*keys: str, size: int = 1, is_truncated: bool = False) -> bytes:
    """A page of a listing with these keys."""
    objects = "".join(
        f"<Contents><Key>{key}</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified>"
        f"<ETag>&quot;1&quot;</ETag><Size>{size}</Size></Contents>"
        for key in keys
    )
    more = "<NextContinuationToken>x</NextContinuationToken>" if is_truncated else ""
    return (
        f"<ListBucketResult><Name>b</Name><KeyCount>{len(keys)}</KeyCount><MaxKeys>1000</MaxKeys>"
        f"<IsTruncated>{str(is_truncated).lower()}</IsTruncated>{more}{objects}</ListBucketResult>"
    ).encode()
