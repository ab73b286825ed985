"""The output of a command that runs in a container, as the API streams it.

A stream is one WebSocket; the first byte of a message names its channel: output, errors, or how the
command ended. A stream that breaks before that was said has not ended: whoever reads goes on with a
new one from where they are.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from anubis.adapters.engine.kubernetes.refusals import Refused
from anubis.domain.errors import EngineUnavailable

if TYPE_CHECKING:
    import aiohttp

PROTOCOL = "v4.channel.k8s.io"
"""The oldest that says how a command ended. The next one only adds an end of the input, and is
translated by the API server, where this one is passed through to the node.
"""

STDOUT, STDERR, STATUS = 1, 2, 3
COMPLAINT_BYTES = 4096


class Output:
    """What a command writes: iterate over it. ``exit_code`` is known when that has ended.

    Iterating raises EngineUnavailable if the stream breaks before the command has ended, and
    Refused if the command could not be started.
    """

    def __init__(self, messages: aiohttp.ClientWebSocketResponse, where: str) -> None:
        self._messages = messages
        self._where = where
        self._complaint = bytearray()
        self.exit_code: int | None = None  #: None: it has not ended

    @property
    def complaint(self) -> str:
        """The end of what it wrote to stderr."""
        return self._complaint.decode(errors="replace").strip()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        import aiohttp

        async for message in self._messages:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, content = message.data[0], message.data[1:]
            if channel == STDOUT and content:
                yield content
            elif channel == STDERR:
                self._complaint += content
                del self._complaint[:-COMPLAINT_BYTES]
            elif channel == STATUS:
                self.exit_code = self._ended(content)
        if self.exit_code is None:
            reason = self._messages.exception() or f"code {self._messages.close_code}"
            raise EngineUnavailable(f"the stream from {self._where} broke ({reason})")

    def _ended(self, content: bytes) -> int:
        status = json.loads(content)
        if status.get("status") == "Success":
            return 0
        causes = (status.get("details") or {}).get("causes") or ()
        for cause in causes:
            if cause.get("reason") == "ExitCode":
                return int(cause["message"])
        message = f"in {self._where}: {status.get('message') or 'no reason given'}"
        raise Refused(int(status.get("code") or 500), str(status.get("reason") or ""), message)
