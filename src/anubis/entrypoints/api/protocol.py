"""HTTP/1.1 as uvicorn speaks it, with bounds on what a client may send and how long it may take.

httptools takes heads and trailers of any length, and uvicorn waits for them, for bodies and for
readers for ever; a stranger must not fill our memory or hold our connections that way.
"""

from __future__ import annotations

import asyncio
import enum
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST_HEAD: Final = 64 * 1024
"""Bytes of request line and headers together, and of all else that is no body: trailers, what
stands beside the sizes of chunks. Browsers and proxies stop far below."""

HEAD_SECONDS: Final = 30.0
"""How long a client may take to send a head, once it is connected or has begun."""

BODY_SECONDS: Final = 60.0
"""How long a client may pause within a body."""

REST_SECONDS: Final = 10.0
"""How long a client may go on to send a body that we have answered without reading it: closing at
once could take the answer from it."""

READER_SECONDS: Final = 300.0
"""How long a client may read nothing of an answer. Somebody may look at it page by page."""

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class _Stage(enum.Enum):
    """What a client has to do next. None: it is our turn, or uvicorn's clock runs."""

    HEAD = enum.auto()
    BODY = enum.auto()
    REST = enum.auto()


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._is_in_head = True
        self._is_whole = False  # the request that comes in, or came in last
        self._extra_bytes = 0  # since anything else came
        self._stage: _Stage | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._blocked: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn declares it
        """A client connected."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._stop_waiting()
        self._stop_blocking()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self._is_in_head, self._is_whole = True, False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header. One that follows the body could change what was decided by those before it."""
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head of a request is complete."""
        self._is_in_head = False
        self._extra_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._extra_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._is_whole = True
        self._extra_bytes = 0
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Some bytes. Those that complete something set the count back."""
        self._extra_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._extra_bytes > LARGEST_HEAD:
            if self._is_in_head:
                self.transport.write(_TOO_LARGE)
            self.transport.close()
            return
        self._wait()

    def on_response_complete(self) -> None:
        """We have answered, perhaps before all was sent."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._wait()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._stop_blocking()
        # Closing would wait until it has read what there is.
        self._blocked = self.loop.call_later(READER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        self._stop_blocking()
        super().resume_writing()

    def _awaited(self) -> _Stage | None:
        if self._is_in_head:
            return _Stage.HEAD
        is_answered = self.cycle.response_complete
        if not self._is_whole:
            return _Stage.REST if is_answered else _Stage.BODY
        # Empty lines between requests stop uvicorn's clock and begin nothing.
        return _Stage.HEAD if is_answered and self.timeout_keep_alive_task is None else None

    def _wait(self) -> None:
        """Give the client time for what it has to do; more of it only if a body goes on."""
        stage = self._awaited()
        if stage is self._stage and stage is not _Stage.BODY:
            return
        self._stop_waiting()
        self._stage = stage
        if stage is not None:
            self._patience = self.loop.call_later(_seconds(stage), self._give_up)

    def _give_up(self) -> None:
        if self._stage is _Stage.BODY and self.flow.read_paused:  # it is us who do not read
            self._wait()
        else:
            self.transport.close()

    def _stop_waiting(self) -> None:
        self._stage = None
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _stop_blocking(self) -> None:
        if self._blocked is not None:
            self._blocked.cancel()
            self._blocked = None


def _seconds(stage: _Stage) -> float:
    seconds = {_Stage.HEAD: HEAD_SECONDS, _Stage.BODY: BODY_SECONDS, _Stage.REST: REST_SECONDS}
    return seconds[stage]
