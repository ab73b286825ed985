"""One question to real servers, good and bad ones."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anubis.adapters.engine import asking, probing
from anubis.domain.observation import UnitReady, UnitSilent, UnitUnready
from anubis.domain.plan import Probe, ProbeKind, Unit

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HTTP = Probe(kind=ProbeKind.HTTP, port=8080, path="/ready", timeout=timedelta(seconds=10))
BRIEFLY = timedelta(milliseconds=100)


@asynccontextmanager
async def listening(serve: Serve, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server that does this with every connection; its port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


def answering(answer: bytes, *, then_waits: bool = False) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        if then_waits:
            await reader.read()

    return serve


async def asked(port: int, probe: Probe = HTTP) -> str:
    """What was wrong; all failures say whom they are about, so that is left out here."""
    failure = await probing.failure(probe, lambda _: ("127.0.0.1", port))
    who = f"{asking.target(probe, '127.0.0.1', port)}: "
    assert not failure or failure.startswith(who)
    return failure.removeprefix(who)


@pytest.mark.parametrize(
    ("kind", "host", "expected"),
    [
        (ProbeKind.HTTP, "172.17.0.2", "http://172.17.0.2:8080/a%20b"),
        (ProbeKind.HTTPS, "::1", "https://[::1]:8080/a%20b"),
        (ProbeKind.TCP, "127.0.0.1", "127.0.0.1:8080"),
    ],
)
def test_who_was_asked_is_told_as_people_would_ask(
    kind: ProbeKind, host: str, expected: str
) -> None:
    probe = dataclasses.replace(HTTP, kind=kind, path="a b")
    assert asking.target(probe, host, 8080) == expected


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", ""),
        (b"HTTP/1.0 204 No Content\n\n", ""),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", ""),
        (b"HTTP/1.1 399\r\n\r\n", ""),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", ""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 No\r\n\r\n", "answered 500 No"),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", "answered 503 Service Unavailable"),
        (b"HTTP/1.1 404\r\n\r\n", "answered 404 Not Found"),
        (b"HTTP/1.1 799\r\n\r\n", "answered 799"),
        (b"HTTP/1.1 400 \x1b[31mred\r\n\r\n", "answered 400 ?[31mred"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "answered 'SSH-2.0-OpenSSH_9.2', which is not HTTP"),
        (b"", "closed the connection without an answer"),
        (b"x" * 100_000, "answered with a header that is too long"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1000, "answered with too many headers"),
    ],
)
async def test_a_status_from_200_to_399_is_a_good_answer(answer: bytes, failure: str) -> None:
    """All else is told."""
    async with listening(answering(answer)) as port:
        assert await asked(port) == failure


async def test_a_server_that_keeps_the_connection_open_has_answered() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    async with listening(answering(head, then_waits=True)) as port:
        assert await asked(port) == ""


async def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async with listening(endless) as port:
        assert await asked(port) == ""


async def test_a_server_that_does_not_answer_is_not_waited_for() -> None:
    probe = dataclasses.replace(HTTP, timeout=BRIEFLY)
    async with listening(answering(b"HTTP/1.1 200 OK\r\n", then_waits=True)) as port:
        assert await asked(port, probe) == "no answer within 0.1 s"


async def test_where_nobody_listens_the_connection_is_refused() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        for kind in ProbeKind:
            assert await asked(port, dataclasses.replace(HTTP, kind=kind)) == "connection refused"


async def test_an_unknown_host_is_a_failure_like_others() -> None:
    assert await probing.failure(HTTP, lambda port: ("no.such.host.invalid", port))


async def test_a_tcp_probe_needs_no_word() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(silent) as port:
        assert await asked(port, dataclasses.replace(HTTP, kind=ProbeKind.TCP)) == ""


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A certificate that nobody would trust."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "1", "-subj", "/CN=elsewhere", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


async def test_any_certificate_will_do(tls: ssl.SSLContext) -> None:
    probe = dataclasses.replace(HTTP, kind=ProbeKind.HTTPS)
    async with listening(answering(b"HTTP/1.1 200 OK\r\n\r\n"), tls=tls) as port:
        assert await asked(port, probe) == ""


async def test_a_server_without_tls_fails_an_https_probe() -> None:
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with listening(plain) as port:
        failure = await asked(port, dataclasses.replace(HTTP, kind=ProbeKind.HTTPS))
    assert failure.startswith("the TLS handshake failed")


@given(path=st.text())
def test_no_path_can_end_the_line_it_stands_in(path: str) -> None:
    target = asking.request_target(path)
    assert target.startswith("/")
    assert target.isascii()
    assert target.isprintable()
    assert " " not in target


@pytest.mark.parametrize("path", ["/ready", "/v2/models/a%20b/ready?verbose=1&x=,;"])
async def test_a_path_is_asked_for_as_it_is_written(path: str) -> None:
    heads: list[bytes] = []

    async def noting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")

    async with listening(noting) as port:
        await asked(port, dataclasses.replace(HTTP, path=path))
    lines = heads[0].decode().split("\r\n")
    assert lines[0] == f"GET {path} HTTP/1.1"
    assert f"Host: 127.0.0.1:{port}" in lines


def a_unit(readiness: Probe | None = None, liveness: Probe | None = None) -> Unit:
    return Unit(
        name="server", command=("x",), environment={}, readiness=readiness, liveness=liveness
    )


class Moody:
    """A server that answers with the status it was told to, and counts."""

    def __init__(self) -> None:
        self.status = 503
        self.asked = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        writer.write(b"HTTP/1.1 %d\r\n\r\n" % self.status)


OFTEN = dataclasses.replace(HTTP, period=timedelta(milliseconds=10))


async def test_a_unit_is_told_to_be_unready_then_ready_then_unready_again() -> None:
    server = Moody()
    async with listening(server.serve) as port, asyncio.timeout(30):
        conditions = probing.conditions(a_unit(readiness=OFTEN), lambda _: ("127.0.0.1", port))
        first = await anext(conditions)
        server.status = 200
        second = await anext(conditions)
        server.status, server.asked = 500, 0
        third = await anext(conditions)
        await conditions.aclose()
    assert [type(c) for c in (first, second, third)] == [UnitUnready, UnitReady, UnitUnready]
    assert server.asked >= OFTEN.failure_threshold


async def test_liveness_is_asked_beside_readiness_and_ends_it_all() -> None:
    server = Moody()
    unit = a_unit(readiness=OFTEN, liveness=OFTEN)
    async with listening(server.serve) as port, asyncio.timeout(30):
        seen = [c async for c in probing.conditions(unit, lambda _: ("127.0.0.1", port))]
    assert [type(c) for c in seen] == [UnitUnready, UnitSilent]


async def test_nobody_is_asked_before_the_initial_delay() -> None:
    server = Moody()
    late = dataclasses.replace(OFTEN, initial_delay=timedelta(hours=1))
    async with listening(server.serve) as port:
        conditions = probing.conditions(
            a_unit(readiness=late, liveness=late), lambda _: ("127.0.0.1", port)
        )
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await anext(conditions)
    assert server.asked == 0


async def test_a_unit_without_probes_is_ready_and_nothing_more() -> None:
    conditions = probing.conditions(a_unit(), lambda port: ("127.0.0.1", port))
    assert isinstance(await anext(conditions), UnitReady)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(conditions)


async def test_whoever_stops_asking_leaves_no_task_behind() -> None:
    server = Moody()
    before = asyncio.all_tasks()
    async with listening(server.serve) as port, asyncio.timeout(30):
        conditions = probing.conditions(
            a_unit(readiness=OFTEN, liveness=dataclasses.replace(OFTEN, failure_threshold=10**6)),
            lambda _: ("127.0.0.1", port),
        )
        await anext(conditions)
        await conditions.aclose()
        assert {t.get_name() for t in asyncio.all_tasks() - before} & {"probe"} == set()
