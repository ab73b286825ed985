"""A real web server for files, on loopback: nginx where it is installed, else ``sendfile``."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

NGINX = """
daemon off;
worker_processes 1;
pid {work}/nginx.pid;
error_log {work}/error.log;
events {{ worker_connections 256; }}
http {{
    log_format sent '$status $body_bytes_sent';
    access_log {work}/sent.log sent;
    sendfile on;
    tcp_nopush on;
    client_body_temp_path {work}/body;
    proxy_temp_path {work}/proxy;
    fastcgi_temp_path {work}/fastcgi;
    uwsgi_temp_path {work}/uwsgi;
    scgi_temp_path {work}/scgi;
    server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""


class FileServer:
    """What serves, and what it sent."""

    def __init__(self, name: str, address: str, log: Path) -> None:
        self.name = name
        self.address = address
        self._log = log

    def sent(self) -> int:
        """Bytes of bodies, in all."""
        time.sleep(0.2)  # a line is written after its answer was
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return sum(int(line.split()[1]) for line in lines)


@contextlib.contextmanager
def serving(root: Path, work: Path) -> Iterator[FileServer]:
    """Serve the files of a folder until the end of the context."""
    port = _free_port()
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/sbin")
    if nginx:
        (work / "nginx.conf").write_text(NGINX.format(work=work, port=port, root=root))
        command = [nginx, "-c", str(work / "nginx.conf"), "-e", str(work / "error.log")]
    else:
        command = [sys.executable, "-m", "bench.file_server", str(root), str(port), str(work)]
    process = subprocess.Popen(command)
    try:
        _wait(port)
        name = "nginx" if nginx else "a sendfile server of this bench"
        yield FileServer(name, f"http://127.0.0.1:{port}", work / "sent.log")
    finally:
        process.terminate()
        process.wait(20)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait(port: int) -> None:
    give_up = time.monotonic() + 20
    while time.monotonic() < give_up:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise TimeoutError("the file server does not answer")


def _answer(connection: socket.socket, root: Path, log: Path) -> None:
    with connection:
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(65_536)
        name = head.split(b" ", 2)[1].decode().lstrip("/")
        with (root / name).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            span = re.search(rb"(?i)range: bytes=(\d+)-(\d*)", head)
            start, end = (int(span[1]), int(span[2] or size - 1) + 1) if span else (0, size)
            connection.sendall(
                f"HTTP/1.1 {'206 Partial Content' if span else '200 OK'}\r\n"
                f'Content-Length: {end - start}\r\nETag: "{size}"\r\nConnection: close\r\n'
                f"Content-Range: bytes {start}-{end - 1}/{size}\r\n\r\n".encode()
            )
            while start < end:
                start += os.sendfile(connection.fileno(), file.fileno(), start, end - start)
    with log.open("a") as lines:
        lines.write(f"200 {end - (int(span[1]) if span else 0)}\n")


def _serve(root: Path, port: int, work: Path) -> None:
    with socket.create_server(("127.0.0.1", port), backlog=64) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_answer, args=(connection, root, work / "sent.log")).start()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
