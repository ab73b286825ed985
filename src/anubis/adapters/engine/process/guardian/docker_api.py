"""Speak with a Docker daemon from a process that has nothing but the standard library.

HTTP/1.0 on purpose: the daemon then ends every answer, also an endless one, by closing the
connection, and there is no transfer encoding to undo. One connection per question.
"""

from __future__ import annotations

import json
import socket

HEAD_BYTES = 64 * 1024
CALL_SECONDS = 30.0
MUCH_BYTES, MANY_FRAMES = 32 * 1024, 64
"""Of a log, found at once: far less than a socket holds, so that whoever filled one had to wait."""

START_SECONDS = 600.0
"""To start a container may take minutes on a slow disk, and longer when many start at once."""


class Refused(Exception):
    """The daemon answered that it will not, or cannot; ``status`` is its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class Answer:
    """An answer whose body still comes: ``start`` is what of it came along with the head."""

    __slots__ = ("connection", "start", "status")

    def __init__(self, connection: socket.socket, status: int, start: bytes) -> None:
        self.connection = connection
        self.status = status
        self.start = start

    def rest(self) -> bytes:
        """All of the body. Raises OSError when it does not come."""
        parts = [self.start]
        with self.connection:
            while part := self.connection.recv(65536):
                parts.append(part)
        return b"".join(parts)


class Daemon:
    """One daemon, by its address (see ``connect``) and the version of its API."""

    __slots__ = ("_address", "_version")

    def __init__(self, address: str, version: str) -> None:
        self._address = address
        self._version = version

    def open(self, method: str, path: str, seconds: float | None = CALL_SECONDS) -> Answer:
        """Ask, and read the head of the answer.

        Raises OSError if the daemon cannot be reached, Refused for any status of failure.
        """
        connection = self._send(method, path, seconds)
        try:
            answer = _read_head(connection)
        except BaseException:
            connection.close()
            raise
        if answer.status >= 400:
            raise Refused(answer.status, _message(answer.rest()))
        return answer

    def wait(self, path: str) -> Wait:
        """Ask to be told of an end. Raises OSError if the daemon cannot be reached."""
        return Wait(self._send("POST", path, CALL_SECONDS))

    def _send(self, method: str, path: str, seconds: float | None) -> socket.socket:
        connection = connect(self._address, seconds)
        try:
            words = f"{method} /v{self._version}{path} HTTP/1.0\r\nHost: docker\r\n"
            connection.sendall(f"{words}Content-Length: 0\r\n\r\n".encode())
        except BaseException:
            connection.close()
            raise
        return connection

    def ask(self, method: str, path: str, seconds: float = CALL_SECONDS) -> dict[str, object]:
        """Ask, and read the whole answer, which is one JSON object or nothing."""
        body = self.open(method, path, seconds).rest()
        content = json.loads(body) if body.strip() else {}
        return content if isinstance(content, dict) else {}


def connect(address: str, seconds: float | None) -> socket.socket:
    """A connection to ``unix:///path`` or ``tcp://host:port``. Raises OSError."""
    scheme, _, rest = address.partition("://")
    if scheme == "unix":
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(seconds)
        try:
            connection.connect(rest)
        except BaseException:
            connection.close()
            raise
        return connection
    host, _, port = rest.rstrip("/").rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), seconds)


def _read_head(connection: socket.socket) -> Answer:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part or len(data) > HEAD_BYTES:
            raise ConnectionResetError("the daemon closed the connection")
        data += part
    head, _, start = data.partition(b"\r\n\r\n")
    return Answer(connection, int(head.split(b" ", 2)[1]), start)


def _message(body: bytes) -> str:
    """What the daemon says, in its words."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace").strip()


class Wait:
    """The daemon's promise to tell when a container ends."""

    __slots__ = ("_heard", "connection")

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.connection.setblocking(False)
        self._heard = b""

    def is_over(self) -> bool:
        """Whether it was told, or will never be; asked whenever something came."""
        # Docker sends the head of its answer at once and Podman at the end: only the body counts.
        try:
            data = self.connection.recv(65536)
        except BlockingIOError:
            return False
        except OSError:
            return True
        self._heard += data
        return not data or self.was_told

    @property
    def was_told(self) -> bool:
        """Whether the daemon kept its promise, and did not go away."""
        return b"\r\n\r\n{" in self._heard


class Log:
    """What a container wrote, as the daemon tells it: frames of one stream after another.

    A frame has a head of eight bytes: the stream, three zeros, the size of what follows.
    """

    __slots__ = ("_fell_behind", "_rest", "_skip", "connection")

    def __init__(self, answer: Answer, skip: list[int]) -> None:
        self.connection = answer.connection
        self.connection.setblocking(False)
        self._rest = answer.start
        self._skip = list(skip)  #: of stdout and stderr, bytes that somebody has kept before us
        self._fell_behind = False

    def read(self, most: int) -> list[tuple[int, bytes]] | None:
        """What came since, as stream (0 or 1) and bytes, in order; None at the end."""
        try:
            data = self.connection.recv(most)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        return self._merged(self._rest + data)

    def early(self) -> list[tuple[int, bytes]]:
        """What came along with the head of the answer."""
        return self._merged(self._rest)

    def _merged(self, data: bytes) -> list[tuple[int, bytes]]:
        """Whole frames, neighbours of one stream joined; what is left is kept for the next."""
        found: list[tuple[int, list[bytes]]] = []
        position, size = 0, len(data)
        while position + 8 <= size:
            end = position + 8 + int.from_bytes(data[position + 4 : position + 8], "big")
            if end > size:
                break
            stream = 1 if data[position] == 2 else 0
            if not found or found[-1][0] != stream:
                found.append((stream, []))
            found[-1][1].append(data[position + 8 : end])
            position = end
        self._rest = data[position:]
        if size >= MUCH_BYTES or sum(len(parts) for _, parts in found) >= MANY_FRAMES:
            self._fell_behind = True
        joined = ((stream, self._unseen(stream, b"".join(parts))) for stream, parts in found)
        return [(stream, content) for stream, content in joined if content]

    def _unseen(self, stream: int, content: bytes) -> bytes:
        known = min(self._skip[stream], len(content))
        self._skip[stream] -= known
        return content[known:]

    @property
    def is_cut(self) -> bool:
        """Whether the last frame is not whole: at the end, something is missing."""
        return bool(self._rest)

    @property
    def may_be_short(self) -> bool:
        """Whether what was followed up to its end may not be all: a daemon that has to wait for us
        when its container ends (seen with 20.10) forgets what it has not sent yet.
        """
        return self.is_cut or self._fell_behind

    def close(self) -> None:
        """Let go of the connection."""
        self.connection.close()
