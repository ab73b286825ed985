"""The pipe of ``emit()``: made before the program starts, and emptied into the journal.

Bytes go from the pipe into the journal inside the kernel, so that at every instant each of them is
in one of the two, whoever is killed then. A frame that was begun and not finished is mended by the
next recorder. The pipe is held open for reading and writing, and so never reports its end.
"""
# pathlib costs megabytes beside every measurement, and each call ten times its time.
# ruff: noqa: PTH104, PTH118

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import os
import stat
import termios
from typing import Final

from anubis.adapters.engine.kubernetes.recording import Journal, Kind, packed

NAME: Final = "fifo"
PIPE_BYTES: Final = 1 << 20
"""The largest pipe an ordinary user may have: a program can write that much while we are away."""

PIECE_BYTES: Final = 256 * 1024
_NO_PIPE: Final = (errno.ELOOP, errno.EISDIR, errno.ENXIO)


class Emitted:
    """What the program emits."""

    def __init__(self, folder: str) -> None:
        self._early = b""
        while (fifo := _opened(folder)) is None:
            self._early += _taken(folder)
        self.fifo = fifo
        with contextlib.suppress(OSError):
            fcntl.fcntl(self.fifo, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def waiting(self) -> int:
        """Bytes that are there now."""
        count = array.array("i", [0])
        fcntl.ioctl(self.fifo, termios.FIONREAD, count)
        return len(self._early) or count[0]

    def keep(self, journal: Journal, most: int) -> int:
        """Move what is there into the journal, at most so many bytes; how many it were."""
        size = min(self.waiting(), most, PIECE_BYTES)
        if not size:
            return 0
        if self._early:
            kept, self._early = self._early[:size], self._early[size:]
            journal.append(packed(Kind.EMITTED, kept))
        else:
            journal.append_from(self.fifo, Kind.EMITTED, size)
        return size

    def drop(self) -> int:
        """Throw away what is there: the program wrote more than it may, and must not block."""
        self._early = b""
        try:
            return len(os.read(self.fifo, PIPE_BYTES))
        except BlockingIOError:
            return 0

    def close(self) -> None:
        """Let go of the pipe."""
        os.close(self.fifo)


def _opened(folder: str) -> int | None:
    """The pipe, which is made if nothing is there; None if something else is."""
    path = os.path.join(folder, NAME)
    with contextlib.suppress(FileExistsError):
        os.mkfifo(path)
    try:
        found = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in _NO_PIPE:
            return None
        raise
    if stat.S_ISFIFO(os.fstat(found).st_mode):
        os.fchmod(found, 0o666)  # whatever user the program runs as
        return found
    os.close(found)
    return None


def _taken(folder: str) -> bytes:
    """What is in the way, put aside. Its content, if it is a file: a program that did not wait for
    the pipe wrote to what it took for it.
    """
    path = os.path.join(folder, NAME)
    aside = f"{path}.early"
    os.rename(path, aside)
    try:
        found = os.open(aside, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(found, "rb") as file:
            return file.read(PIPE_BYTES) or b""
    except OSError as error:
        if error.errno in _NO_PIPE:
            return b""
        raise
