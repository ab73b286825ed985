"""Wake-ups between processes of one machine, through a named pipe in the home directory.

A named pipe rather than a Unix socket: no limit of 108 bytes on the path, no address left behind
in use after a crash, and opening it for writing tells at once whether anybody listens.
"""

from __future__ import annotations

import asyncio
import errno
import os
from contextlib import AsyncExitStack
from pathlib import Path

from anubis.adapters.event_bus.in_process import InProcessBus


class PipeSender:
    """The side of the commands. Opened for each wake-up: they are rare and short-lived."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def wake(self) -> bool:
        """Write one byte if somebody reads. A full pipe is as good: a wake-up is on its way."""
        try:
            pipe = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.ENOENT):
                return False
            raise
        try:
            os.write(pipe, b"\n")
        except BlockingIOError:
            return True
        except BrokenPipeError:  # the listener left between our two steps
            return False
        finally:
            os.close(pipe)
        return True

    async def wait(self, seconds: float) -> bool:
        """Commands are woken by nobody: they look at the store."""
        await asyncio.sleep(seconds)
        return False


class PipeReceiver(InProcessBus):
    """The side of the runtime: turns bytes in the pipe into wake-ups."""

    def __init__(self, pipe: int) -> None:
        super().__init__()
        self._pipe = pipe

    @classmethod
    def open(cls, path: Path, stack: AsyncExitStack) -> PipeReceiver:
        """Listen until the stack is closed. Needs a running event loop."""
        if not path.is_fifo():
            path.unlink(missing_ok=True)
            os.mkfifo(path, 0o600)
        # Read and write: without a writer of our own, the pipe would be at its end all the time.
        pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        stack.callback(os.close, pipe)
        receiver = cls(pipe)
        loop = asyncio.get_running_loop()
        loop.add_reader(pipe, receiver._drain)
        stack.callback(loop.remove_reader, pipe)
        return receiver

    def _drain(self) -> None:
        try:
            os.read(self._pipe, 4096)
        except BlockingIOError:
            return
        self.wake()
