"""Move what a program writes from its FIFO into a file, so that no byte can fall in between.

``splice`` moves pages inside the kernel: whenever the mover is killed, a byte is either still in
the pipe or already in the file. The FIFO is held open for reading and writing: it then never
reports a hang-up, whether the program closes its end, opens it again, or leaves it to a child.
"""
# pathlib would cost a zygote 5 ms at its start, and each call ten times its time.
# ruff: noqa: PTH116

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select

from anubis.adapters.engine.process.guardian import files

PIPE_BYTES = 1 << 20
"""The largest pipe an ordinary user may have: a program can write that much while we sleep."""

_FLAGS = os.SPLICE_F_MOVE | os.SPLICE_F_NONBLOCK


class Channel:
    """One stream of a run: its FIFO, its file, and how many bytes are kept."""

    __slots__ = ("_can_splice", "_file", "_path", "fifo", "kept", "number")

    def __init__(self, directory: str, number: int) -> None:
        fifo, file = files.STREAMS[number]
        self.number = number
        self.fifo = os.open(
            f"{files.live(directory)}/{fifo}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
        )
        self._path = f"{directory}/{file}"
        self._file: int | None = None
        self._can_splice = True
        self.kept = 0

    def widen(self) -> None:
        """Give the program the largest pipe we may; the default size works too."""
        with contextlib.suppress(OSError):
            fcntl.fcntl(self.fifo, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def resume(self) -> None:
        """Go on after a dead mover: its file is the truth about what was kept."""
        with contextlib.suppress(FileNotFoundError):
            self.kept = os.stat(self._path).st_size

    def has_data(self) -> bool:
        """Whether something waits in the pipe now."""
        poll = select.poll()
        poll.register(self.fifo, select.POLLIN)
        return bool(poll.poll(0))

    def keep(self, most: int) -> int:
        """Move what is there, at most ``most`` bytes; 0 when the pipe is empty."""
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            moved = self._splice(most) if self._can_splice else self._copy(most)
        except BlockingIOError:
            return 0
        self.kept += moved
        return moved

    def _splice(self, most: int) -> int:
        assert self._file is not None
        try:
            return os.splice(self.fifo, self._file, most, offset_dst=self.kept, flags=_FLAGS)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._can_splice = False  # this file system cannot; a kill may now cost one read
            return self._copy(most)

    def _copy(self, most: int) -> int:
        assert self._file is not None
        data = os.read(self.fifo, most)
        written = 0
        while written < len(data):
            written += os.pwrite(self._file, data[written:], self.kept + written)
        return written

    def drop(self) -> None:
        """Throw away what is there: the program wrote more than it may, and must not block."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.fifo, PIPE_BYTES)

    def sync(self) -> None:
        """Bring what was kept to the disk."""
        if self._file is not None and self.kept:
            os.fsync(self._file)

    def close(self) -> None:
        """Let go of the FIFO and of the file."""
        os.close(self.fifo)
        if self._file is not None:
            os.close(self._file)
