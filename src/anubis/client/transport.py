"""Send calls to one service, and again where that is safe.

Safe are calls whose ``is_repeatable`` says so, after a connection that failed or broke, a status
that says "not for the moment" (502, 503, 504), or 429 with the time to wait. All else is the
caller's at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta
from pathlib import Path

import httpx

import anubis
from anubis.adapters.clock.system import SystemClock
from anubis.client import troubles
from anubis.client.calling import Call, Reply
from anubis.client.retrying import ONE_CALL, BackOff, Policy
from anubis.domain.endpoint import Endpoint
from anubis.domain.errors import AnubisError, PermanentError, TooMuch, UnexpectedAnswer, UserError
from anubis.ports.clock import Clock

ROOT = "/api/v1"
CONNECTING = 3.0
"""Seconds for a connection: a machine that is there answers in one, a route that swallows packets
never does, and a person waits."""

LARGEST_ANSWER = 2**30
"""Bytes. The samples of the largest runs, all at once; output comes as a stream."""

LARGEST_REFUSAL = 2**24
"""Bytes of an answer that says no: a descriptor may have many problems."""

_TELLING = ("content-type", "retry-after")
"""Headers of a refusal that say something about it."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Manner:
    """How to speak to a service, for those who want to decide it."""

    policy: Policy = ONE_CALL
    """How patiently calls that are safe to repeat are repeated."""

    notify: Callable[[str], None] | None = None
    """Told, in a sentence for people, when a watch loses the service and when it has it again."""

    clock: Clock | None = None
    """By which time pauses are made; None: by the machine's."""

    transport: httpx.AsyncBaseTransport | None = None
    """What carries the requests, for tests; None: the network."""


class Setback(Exception):
    """An attempt failed in a way that another attempt may not. Never leaves this package."""

    def __init__(self, error: AnubisError, *, wait: float = 0.0) -> None:
        self.error = error  #: what to raise when there is no other attempt
        self.wait = wait  #: seconds the service asked for
        super().__init__(str(error))


class Transport:
    """A connection to one service. Made and closed by ``Client``."""

    def __init__(
        self, endpoint: Endpoint, http: httpx.AsyncClient, manner: Manner, timeout: timedelta
    ) -> None:
        self.endpoint = endpoint
        # Nobody wires a client but its user, so it brings its own clock.
        self.clock: Clock = manner.clock or SystemClock()
        self.policy = manner.policy
        self.notify = manner.notify
        self._http = http
        self._timeout = timeout

    async def send(self, call: Call) -> Reply:
        """The answer to a call. Raises what the service said went wrong, or ServiceUnavailable."""
        back_off = BackOff(self.policy, self.clock)
        is_first = True
        while True:
            try:
                async with self.stream(call) as response:
                    content = await self._content(response, LARGEST_ANSWER)
                return Reply(status=response.status_code, content=content)
            except Setback as setback:
                if not call.is_repeatable or not await back_off.rest(setback.wait):
                    raise setback.error from setback.__cause__
            except AnubisError as error:
                if is_first or call.done_if is None or not isinstance(error, call.done_if):
                    raise
                return Reply(status=httpx.codes.NO_CONTENT, content=b"")
            is_first = False

    @contextlib.asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[httpx.Response]:
        """A good answer, to be read as it comes. Tried once; raises Setback, also while it is
        read: whoever reads it knows where to go on.
        """
        try:
            response = await self._http.send(self._request(call), stream=True)
            try:
                if not response.is_success and response.status_code not in call.tells:
                    content = await self._content(response, LARGEST_REFUSAL)
                    headers = [one for one in response.headers.items() if one[0] in _TELLING]
                    status = response.status_code
                    raise self._refusal(httpx.Response(status, headers=headers, content=content))
                yield response
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            trouble = troubles.of_transport(self.endpoint, error)
            if isinstance(trouble, PermanentError):
                raise trouble from error
            raise Setback(trouble) from error

    async def _content(self, response: httpx.Response, limit: int) -> bytes:
        """All of an answer. Whatever listens there, it does not fill our memory."""
        content = bytearray()
        async for piece in response.aiter_bytes():
            content += piece
            if len(content) > limit:
                raise UnexpectedAnswer(
                    f"the service at {self.endpoint} answered something unexpected: more than "
                    f"{limit:,} bytes; is this Anubis?"
                )
        return bytes(content)

    def _refusal(self, response: httpx.Response) -> Exception:
        error = troubles.of_answer(self.endpoint, response)
        if response.status_code in troubles.AGAIN:
            return Setback(error, wait=troubles.retry_after(response) or 0.0)
        if isinstance(error, TooMuch) and error.retry_after is not None:
            return Setback(error, wait=error.retry_after)
        return error

    def _request(self, call: Call) -> httpx.Request:
        takes = call.takes or self._timeout
        return self._http.build_request(
            call.method,
            ROOT + call.path,
            # An empty list would take away nothing, but httpx would add a bare question mark.
            params=list(call.query) or None,
            headers=call.headers,
            content=(call.content or None) if call.parts is None else call.parts,
            timeout=httpx.Timeout(takes.total_seconds(), connect=CONNECTING),
        )


def connection(
    endpoint: Endpoint,
    headers: Mapping[str, str],
    verify: bool | Path,
    transport: httpx.AsyncBaseTransport | None,
) -> httpx.AsyncClient:
    """An HTTP client for one endpoint, to be closed by whoever asked for it."""
    usual = {"User-Agent": f"anubis/{anubis.__version__}"}
    if endpoint.is_loopback:  # packing costs both sides more there than it saves on the way
        usual["Accept-Encoding"] = "identity"
    return httpx.AsyncClient(
        base_url=endpoint.url,
        headers={**usual, **headers},
        # Reading the certificates of the world takes longer than most calls: only where needed.
        verify=_certificates(verify) if endpoint.is_encrypted else False,
        # A redirect would carry the token to wherever it leads.
        follow_redirects=False,
        # Proxies are for the way out; what is on this machine needs none.
        trust_env=not endpoint.is_loopback,
        # A watch holds a connection, and a program may have many of them.
        limits=httpx.Limits(max_connections=None),
        transport=transport,
    )


def _certificates(verify: bool | Path) -> bool | ssl.SSLContext:
    if isinstance(verify, bool):
        return verify
    try:
        return ssl.create_default_context(cafile=str(verify))
    except OSError as error:  # ssl's own errors are among them
        raise UserError(
            f"ANUBIS_CA_FILE: found {str(verify)!r}, expected a file of certificates ({error})"
        ) from error
