"""Calls to the API of a cluster: one session, deadlines, what to try again, and what is counted.

Requests that the server turns away because it is busy are sent again when it says; those that it
never got because the connection was old, once. Everything else goes to the caller as an error of
refusals. No wait is without an end.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import ipaddress
import json
import random
import socket
import time
import warnings
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from anubis.adapters.engine.kubernetes import access as accesses
from anubis.adapters.engine.kubernetes import refusals
from anubis.domain.errors import EngineUnavailable

if TYPE_CHECKING:
    import aiohttp

CONNECT_SECONDS = 10.0
CALL_SECONDS = 30.0
"""Most calls take milliseconds; a server that starts, or elects, takes seconds."""

GOODBYE_SECONDS = 0.3  #: how long the other end may take to agree that a connection is over
CLOSING_SECONDS = 1.0
BUSY_SECONDS = 20.0
"""How long a server may send us away in all, before whoever called hears of it."""

AT_ONCE = 32
"""Calls under way at the same time. Each has a connection, whose TLS costs more than the call; and
the server shares itself out among those who ask. Streams are not counted.
"""

KEEPALIVE = {
    "TCP_KEEPIDLE": 20,
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 50_000,
}
"""A machine that is switched off, or a router that forgets, says no farewell: a connection on which
nothing can arrive is given up after 50 seconds, instead of the hours of the system.
"""

RENEW_SECONDS = 60.0
"""How often credentials that are not accepted are read anew."""

MESSAGE_BYTES = 4 * 1024 * 1024  #: the largest message of an exec stream
LINE_BYTES = 16 * 1024 * 1024  #: the largest event of a watch; etcd's objects have 1.5 MB at most

Query = Sequence[tuple[str, str]]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One call."""

    verb: str  #: as rights spell it; ``apply`` for a patch that is one
    kind: str  #: what it is about, for who counts calls
    method: str
    path: str
    query: Query = ()
    body: Mapping[str, object] | None = None
    content_type: str = "application/json"
    accept: str = "application/json"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What came back."""

    status: int
    body: bytes
    retry_after: float | None  #: seconds, where the server is busy

    def content(self) -> Any:
        """The JSON in it."""
        return _parsed(self.body)


class Calling:
    """The session with one cluster. Opened with the first call."""

    def __init__(self, access: accesses.Access) -> None:
        self.access = access
        self.calls: collections.Counter[tuple[str, str]] = collections.Counter()
        self._entrance: accesses.Entrance | None = None
        self._session: aiohttp.ClientSession | None = None
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._opening = asyncio.Lock()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._renewed = 0.0  #: when the credentials were read last

    @property
    def entrance(self) -> accesses.Entrance:
        """Where we are. Only after ``open``."""
        assert self._entrance is not None, "the cluster was not connected"
        return self._entrance

    @property
    def words(self) -> str:
        """The cluster, named for people who look for a mistake."""
        server = f" at {self._entrance.server}" if self._entrance else ""
        return f"the Kubernetes cluster{server} ({self.access.words})"

    async def open(self) -> aiohttp.ClientSession:
        """Read the access, if that was not done yet. Nothing is asked of the cluster."""
        async with self._opening:
            if self._session is None:
                entrance = await accesses.enter(self.access)
                self._renewed = time.monotonic()
                self._session = _session(entrance, self._sockets)
                self._entrance = entrance
            return self._session

    async def close(self) -> None:
        """Let go of all connections. A later call opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
            await self._see_them_closed()

    async def _see_them_closed(self) -> None:
        """Sockets under TLS are closed some turns of the loop later, which may be its last. One
        whose connecting was canceled belongs to nobody any more.
        """
        until = time.monotonic() + CLOSING_SECONDS
        # Nobody tells when a transport has closed its socket.
        while any(one.fileno() >= 0 for one in self._sockets) and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for one in self._sockets:
            one.close()

    async def call(self, asked: Asked) -> Answer:
        """Ask, and give the answer, whatever its status, unless it is that of no answer."""
        give_up = time.monotonic() + BUSY_SECONDS
        while True:
            async with self._places:
                answer = await self._answered(asked)
            pause = answer.retry_after
            if pause is None or time.monotonic() + pause > give_up:
                return answer
            await asyncio.sleep(pause * random.uniform(1, 1.5))  # noqa: S311  not for secrets

    async def want(self, asked: Asked) -> Answer:
        """Ask, and raise what is not a success."""
        answer = await self.call(asked)
        if answer.status >= 300:
            raise self.refusal(answer.status, answer.body)
        return answer

    def refusal(self, status: int, body: bytes) -> EngineUnavailable:
        """The error for an answer that is none."""
        return refusals.refusal(status, refusals.told(body), self.words)

    @contextlib.asynccontextmanager
    async def stream(self, asked: Asked, silence: float) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Ask, and give the body as it comes; ``silence`` seconds without a byte are an error."""
        import aiohttp

        session = await self.open()
        timeout = aiohttp.ClientTimeout(
            total=None, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=silence
        )
        self.calls[asked.verb, asked.kind] += 1
        with self._translating(f"silent for {silence:g} s"):
            words = await self._words(asked, timeout)
            async with session.request(**words) as response:
                if response.status >= 300:
                    raise self.refusal(response.status, await response.content.read(65536))
                yield response.content.iter_any()

    @contextlib.asynccontextmanager
    async def websocket(
        self, asked: Asked, protocol: str, heartbeat: float
    ) -> AsyncGenerator[aiohttp.ClientWebSocketResponse]:
        """Open a stream of messages. A peer that answers no heartbeat ends it with an error."""
        import aiohttp

        session = await self.open()
        self.calls[asked.verb, asked.kind] += 1
        with self._translating(f"no stream within {CALL_SECONDS:g} s"):
            words = await self._words(asked, aiohttp.ClientWSTimeout(ws_close=CONNECT_SECONDS))
            async with asyncio.timeout(CALL_SECONDS):
                messages = await self._upgraded(
                    session, words, protocols=(protocol,), heartbeat=heartbeat
                )
            async with messages:
                yield messages

    async def _upgraded(
        self, session: aiohttp.ClientSession, words: dict[str, Any], **more: Any
    ) -> aiohttp.ClientWebSocketResponse:
        import aiohttp

        try:
            messages: aiohttp.ClientWebSocketResponse = await session.ws_connect(
                **words, **more, max_msg_size=MESSAGE_BYTES
            )
        except aiohttp.WSServerHandshakeError as error:
            # The library gives no body: the words are asked for without the wish to upgrade.
            raise await self._why_not(words, error.status) from error
        return messages

    async def _why_not(self, asked: dict[str, Any], status: int) -> EngineUnavailable:
        answer = await self._once({**asked, "timeout": _call_timeout()})
        if status == 403 and b"cannot" not in answer.body:
            # To ask is permitted; to have a stream is another right, and the answer has no words.
            words = 'cannot create resource "pods/exec"'
            return refusals.refusal(403, {"message": words}, self.words)
        if answer.status == 400 and b"Upgrade request required" in answer.body:
            return self._unavailable(f"it opens no stream: HTTP {status}")
        return self.refusal(answer.status, answer.body)

    async def _answered(self, asked: Asked) -> Answer:
        """One answer, with credentials that were renewed if that is needed."""
        await self.open()
        answer = await self._sent(asked)
        if answer.status == 401 and await self._renew():
            answer = await self._sent(asked)
        return answer

    async def _sent(self, asked: Asked) -> Answer:
        """Send, twice if the first went into a connection that the server had closed already."""
        import aiohttp

        self.calls[asked.verb, asked.kind] += 1
        with self._translating(f"no answer within {CALL_SECONDS:g} s"):
            words = await self._words(asked, _call_timeout())
            try:
                return await self._once(words)
            except (aiohttp.ServerDisconnectedError, ConnectionResetError):
                if asked.method == "POST":  # the only one that is not the same if done twice
                    raise
                return await self._once(words)

    async def _once(self, words: dict[str, Any]) -> Answer:
        session = await self.open()
        # The library's own limit of a whole call eats a cancellation that comes with it.
        async with asyncio.timeout(CALL_SECONDS), session.request(**words) as response:
            body = await response.read()
            pause = response.headers.get("Retry-After", "")
            is_busy = response.status == 429 or (response.status >= 500 and pause)
            return Answer(
                status=response.status,
                body=body,
                retry_after=(float(pause) if pause.isdecimal() else 1.0) if is_busy else None,
            )

    async def _words(self, asked: Asked, timeout: object) -> dict[str, Any]:
        """The call as aiohttp wants it."""
        entrance = self.entrance
        headers = {"Accept": asked.accept, "User-Agent": "anubis"}
        if authorization := await entrance.authorization():
            headers["Authorization"] = authorization
        words: dict[str, Any] = {
            "method": asked.method,
            "url": entrance.server + asked.path,
            "params": list(asked.query),
            "headers": headers,
            "timeout": timeout,
            "proxy": entrance.proxy,
            "server_hostname": entrance.tls_name,
        }
        if asked.body is not None:
            headers["Content-Type"] = asked.content_type
            words["data"] = json.dumps(asked.body).encode()
        return words

    async def _renew(self) -> bool:
        """Read the access anew: certificates and tokens in files change while we run."""
        if time.monotonic() - self._renewed < RENEW_SECONDS:
            return False
        await self.close()
        await self.open()
        return True

    @contextlib.contextmanager
    def _translating(self, late: str) -> Iterator[None]:
        import aiohttp

        try:
            yield
        except aiohttp.ConnectionTimeoutError as error:
            raise self._unavailable(f"no connection within {CONNECT_SECONDS:g} s") from error
        except TimeoutError as error:
            raise self._unavailable(late) from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._unavailable(str(error) or type(error).__name__) from error

    def _unavailable(self, why: str) -> EngineUnavailable:
        return EngineUnavailable(
            f"{self.words} does not answer ({why}); see that it runs and that `kubectl get pods` "
            "works with the same access"
        )


def _session(
    entrance: accesses.Entrance, sockets: weakref.WeakSet[socket.socket]
) -> aiohttp.ClientSession:
    """``sockets`` is where those that are made are noted."""
    import aiohttp

    def noted(address: aiohttp.AddrInfoType) -> socket.socket:
        made = _socket(address)
        sockets.add(made)
        return made

    with warnings.catch_warnings():
        # Without this word, a stream whose peer is gone is closed half a minute later. It is called
        # deprecated, and there is no other.
        warnings.simplefilter("ignore", DeprecationWarning)
        connector = aiohttp.TCPConnector(
            limit=0,  # as many as there are streams: one for each pod that is listened to
            ssl=entrance.tls,
            socket_factory=noted,
            ssl_shutdown_timeout=GOODBYE_SECONDS,
        )
    return aiohttp.ClientSession(
        connector=connector,
        # The environment's proxy, as for kubectl; which never asks one for its own machine.
        trust_env=not _is_this_machine(entrance.server),
        auto_decompress=True,
    )


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that notices when nobody is at its other end, however long nothing is said."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):  # each system has some of them
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def _call_timeout() -> aiohttp.ClientTimeout:
    import aiohttp

    return aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS)


def _is_this_machine(server: str) -> bool:
    host = urlsplit(server).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _parsed(content: bytes | bytearray) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        begin = bytes(content[:80]).decode(errors="replace")
        raise EngineUnavailable(
            f"what answers is no Kubernetes API, it says: {begin!r}; see the server in the "
            "kubeconfig, and proxies on the way to it"
        ) from error


async def json_lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[Mapping[str, Any]]:
    """The objects in a stream that has one in each line."""
    rest = bytearray()
    async for chunk in chunks:
        *whole, begun = chunk.split(b"\n")
        for part in whole:
            rest += part
            if rest:
                yield _parsed(rest)
            rest.clear()
        rest += begun
        if len(rest) > LINE_BYTES:
            raise EngineUnavailable(f"an event has more than {LINE_BYTES} bytes")
