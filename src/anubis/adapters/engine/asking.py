"""One question of a probe: connect, perhaps ask for a page, and say what was wrong with the answer.

Written on plain connections: a client library would cost more to load than all the questions of a
run, and would read whole answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import os
import ssl
import urllib.parse

from anubis.domain.plan import Probe, ProbeKind

LINE_BYTES = 8 * 1024
HEADER_LINES = 256
REST_BYTES = 10 * 1024
"""As much of an answer's body as Kubernetes reads. Not reading it at all would make some servers
complain in their log."""

REST_SECONDS = 0.1
"""How long we wait for that: the answer is known by then."""

SHOWN_CHARACTERS = 80
GOOD = range(200, 400)
PROVISIONAL = range(100, 200)

_PATH = "!$%&'()*+,/:;=?@-._~"
"""Characters of a path that are sent as they are; all others, control characters among them, as
percent and number: a path must not be able to end the line it stands in."""


async def ask(probe: Probe, host: str, port: int) -> str:
    """Empty if the answer is a good one, else what it was. The caller limits the time."""
    try:
        reader, writer = await asyncio.open_connection(
            host, port, limit=LINE_BYTES, ssl=_context(probe.kind)
        )
    except OSError as error:
        return _why_not_connected(error)
    try:
        return "" if probe.kind is ProbeKind.TCP else await _get(probe.path, reader, writer)
    except OSError as error:
        return _why_no_answer(error)
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def target(probe: Probe, host: str, port: int) -> str:
    """Who is asked, for people: the port is often not the one of the descriptor."""
    place = f"{_in_url(host)}:{port}"
    if probe.kind is ProbeKind.TCP:
        return place
    return f"{probe.kind}://{place}{request_target(probe.path)}"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _context(kind: ProbeKind) -> ssl.SSLContext | None:
    if kind is not ProbeKind.HTTPS:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _get(path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    host, port, *_ = writer.get_extra_info("peername")
    lines = (
        f"GET {request_target(path)} HTTP/1.1",
        f"Host: {_in_url(host)}:{port}",
        "User-Agent: anubis-probe",
        "Accept: */*",
        "Connection: close",
    )
    writer.write("".join(f"{line}\r\n" for line in (*lines, "")).encode("ascii"))
    answer = await _read_head(reader)
    await _read_rest(reader)
    return answer


def request_target(path: str) -> str:
    """What is asked for: the path, and nothing that could be more than a path."""
    target = urllib.parse.quote(path, safe=_PATH, errors="replace")
    return target if target.startswith("/") else f"/{target}"


async def _read_head(reader: asyncio.StreamReader) -> str:
    """Read up to the end of the headers; empty if the status is a good one."""
    try:
        status = await reader.readline()
        for _ in range(HEADER_LINES):
            line = await reader.readline()
            if line.strip():
                continue
            if not line or _code(status) not in PROVISIONAL:
                return _judged(status)
            status = await reader.readline()
    except ValueError:  # of the reader: a line longer than we read
        return "answered with a header that is too long"
    return "answered with too many headers"


async def _read_rest(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(EOFError, OSError):  # the end, or our patience's
        async with asyncio.timeout(REST_SECONDS):
            await reader.readexactly(REST_BYTES)


def _judged(line: bytes) -> str:
    if not line:
        return "closed the connection without an answer"
    code = _code(line)
    if code is None:
        return f"answered {_shown(line)!r}, which is not HTTP"
    if code in GOOD:
        return ""
    return f"answered {code} {_phrase(code, line)}".rstrip()


def _code(line: bytes) -> int | None:
    """The status of an answer, by its first line: ``HTTP/1.1 503 Service Unavailable``."""
    words = line.split(maxsplit=2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/"):
        return None
    return int(words[1]) if len(words[1]) == 3 and words[1].isdigit() else None


def _phrase(code: int, line: bytes) -> str:
    _, _, *phrase = line.split(maxsplit=2)
    if phrase:
        return _shown(phrase[0])
    try:
        return http.HTTPStatus(code).phrase
    except ValueError:
        return ""


def _shown(line: bytes) -> str:
    """What a stranger wrote, as one short line."""
    text = line.decode("utf-8", "replace").strip()
    return "".join(c if c.isprintable() else "?" for c in text)[:SHOWN_CHARACTERS]


def _why_not_connected(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return _why_no_answer(error)


def _why_no_answer(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return f"the TLS handshake failed: {error.reason or error}"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "closed the connection without an answer"
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()  # its own text would name the address again
    return str(error.strerror or error).lower()
