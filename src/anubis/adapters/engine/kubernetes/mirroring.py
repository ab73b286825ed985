"""The copy of a unit's journal on this machine, byte by byte the recorder's own.

It only ever holds whole frames. So its size is where to go on: after a stream that broke, a restart
of ours, of the cluster's API or of the node. Readers follow the file; whoever appends knows how the
journal ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from anubis.adapters.engine.kubernetes import recording
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.recording import Frame, Kind
from anubis.adapters.engine.process.following import moment
from anubis.domain.errors import EngineUnavailable
from anubis.domain.observation import EndCause

RECORDER: Final = "recorder"
"""The container with the journal."""

_PIECE_BYTES: Final = 1 << 20
_SMALL_BYTES: Final = 1 << 16
"""What is written without a thread: it takes less time than to ask for one."""


class Mirror:
    """One copy. ``open`` it first; one of them at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._rest = b""
        self.size = 0  #: bytes of whole frames
        self.sealed: dict[str, object] | None = None  #: ``recording.Totals``, once all is there
        self.stopped: EndCause | None = None  #: why the recorder stopped the program
        self.began: datetime | None = None  #: as the recorder saw it
        self.ended: datetime | None = None

    async def open(self) -> None:
        """Find out what an earlier life has copied. Raises OSError."""
        if self._descriptor is None:
            await asyncio.to_thread(self._recover)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, 0o600)

    def _recover(self) -> None:
        self.size = 0
        for frame in recording.recover(str(self._path)):
            self.size += recording.HEADER.size + len(frame.payload)
            self._note(frame)

    async def add(self, content: bytes) -> None:
        """Take more of the recorder's bytes. Raises OSError, and Damaged for what is no journal."""
        found, rest = recording.frames(self._rest + content)
        whole = (self._rest + content)[: len(self._rest) + len(content) - len(rest)]
        if len(whole) > _SMALL_BYTES:
            await _to_its_end(asyncio.to_thread(self._append, whole))
        else:
            self._append(whole)
        self._rest = rest
        for frame in found:
            self._note(frame)

    def _append(self, content: bytes) -> None:
        assert self._descriptor is not None, "open it first"
        start = self.size
        try:
            while content:
                written = os.write(self._descriptor, content)
                content = content[written:]
                self.size += written
        except OSError:  # a full disk: nobody shall read half a frame, or find one twice
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, start)
            self.size = start
            raise

    async def sync(self) -> None:
        """See that a power cut does not take what is here. Raises OSError."""
        if self._descriptor is not None:
            await _to_its_end(asyncio.to_thread(os.fsync, self._descriptor))

    def _note(self, frame: Frame) -> None:
        match frame.kind:
            case Kind.BEGAN:
                self.began = self.began or moment(frame.at_ns)
            case Kind.STOPPED if self.stopped is None:
                self.stopped = EndCause(str(frame.json().get("cause")))
            case Kind.ENDED:
                self.ended = self.ended or moment(frame.at_ns)
            case Kind.SEALED:
                self.sealed = frame.json()

    def forget_half(self) -> None:
        """A new stream begins at ``size``: what came of an unfinished frame comes again."""
        self._rest = b""

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


async def follow(cluster: Cluster, pod: str, mirror: Mirror, told: Callable[[], None]) -> None:
    """Copy until the journal is sealed; calls ``told`` after every piece.

    Returns early if the command that sends it ended, which it does with its container. Raises
    EngineUnavailable if the stream breaks, or if this machine's disk takes no more.
    """
    mirror.forget_half()
    command = ("tail", "-c", f"+{mirror.size + 1}", "-f", recording.JOURNAL)
    async with cluster.exec(pod, RECORDER, command) as output:
        async for piece in output:
            try:
                await mirror.add(piece)
            except OSError as error:
                text = f"it cannot be kept on this machine: {error.strerror}"
                raise EngineUnavailable(text) from error
            told()
            if mirror.sealed is not None:
                return


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Wait for a thread, also if we are canceled meanwhile: it has our file, which is closed then,
    and whose number another file may get.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


class Reader:
    """Reads a copy from its beginning, as it grows. Blocking, a piece at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._rest = b""
        self._position = 0

    def turn(self, size: int) -> Iterator[Sequence[Frame]]:
        """The frames that are new since the last turn, in batches; ``size`` of the copy is known
        to be whole.
        """
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return
        while self._position < size:
            wanted = min(_PIECE_BYTES, size - self._position)
            piece = os.pread(self._descriptor, wanted, self._position)
            if not piece:  # a disk lost its tail
                return
            self._position += len(piece)
            found, self._rest = recording.frames(self._rest + piece)
            yield found

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
