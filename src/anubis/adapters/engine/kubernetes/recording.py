"""The journal of a unit on Kubernetes: frames that the recorder appends and the engine reads.

One file holds all that is to be known of a unit while it runs, in the order in which it was seen:
what it wrote and emitted, what it used, how it answered, and why it was stopped. It only ever
grows: whoever has the first n bytes goes on with the byte n, and a copy is right at every moment.

Shared by the recorder and by the engine. Only the standard library, and of that little: the
recorder sits beside every measurement.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import json
import os
import struct
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

JOURNAL: Final = "/var/lib/anubis-record/journal"  #: where it is, in the recorder's container
STOP: Final = "/var/lib/anubis-record/stop"  #: a request to stop; see ``recorder.stopping``
RELEASED: Final = "/var/lib/anubis-record/released"  #: says that the recorder may go

HEADER: Final = struct.Struct("<BIq")
"""Kind, length of the payload, time in ns since 1970."""

POSITION: Final = struct.Struct("<q")
"""Before the bytes of an output frame: how far the container's log was read with it."""

LARGEST_PAYLOAD: Final = 1 << 20
"""No frame is larger. A length above it is damage, and not something to wait for."""

_PIECE_BYTES: Final = 1 << 20


class Kind(enum.IntEnum):
    """What a frame tells. Readers pass over kinds they do not know."""

    STDOUT = 1  #: a position, then bytes as the program wrote them; lines may be cut anywhere
    STDERR = 2
    EMITTED = 3  #: bytes from the pipe of ``emit()``; lines may be cut anywhere
    READING = 4  #: JSON: ``Reading``
    CONDITION = 5  #: JSON: condition ("ready", "unready", "silent"), message
    STOPPED = 6  #: JSON: cause; written before the program is signaled
    SEALED = 7  #: JSON: ``Totals``; the program has ended and this is the last frame about it
    NOTE = 8  #: JSON: message; something to tell the user
    FILE = 9  #: JSON: where a file of the container's log begins; for the recorder itself
    BEGAN = 10  #: JSON, empty: when the program began, if the cluster says that it did
    ENDED = 11  #: JSON: cpu_seconds; the program's first process has ended


class Damaged(ValueError):
    """These bytes are not a journal."""


class Frame(NamedTuple):
    """One entry."""

    kind: int
    at_ns: int  #: since 1970
    payload: bytes

    def json(self) -> dict[str, object]:
        """The payload of a frame that has JSON in it. Raises Damaged if it has not."""
        try:
            found = json.loads(self.payload)
        except ValueError:
            raise Damaged(f"a frame of kind {self.kind} has no JSON in it") from None
        if not isinstance(found, dict):
            raise Damaged(f"a frame of kind {self.kind} has no object in it")
        return found

    @property
    def data(self) -> bytes:
        """The bytes that a program wrote or emitted."""
        is_output = self.kind in (Kind.STDOUT, Kind.STDERR)
        return self.payload[POSITION.size :] if is_output else self.payload

    @property
    def position(self) -> int:
        """How far the container's log was read with this output. Raises Damaged."""
        if len(self.payload) < POSITION.size:
            raise Damaged(f"a frame of kind {self.kind} has no position")
        return int(POSITION.unpack_from(self.payload)[0])


class Reading(NamedTuple):
    """What all processes of the program use at one instant; see ``domain.observation``."""

    cpu_seconds: float
    memory_bytes: int
    read_bytes: int
    written_bytes: int
    threads: int
    processes: int


class Totals(NamedTuple):
    """What the journal holds in the end."""

    stdout_bytes: int
    stderr_bytes: int
    emitted_bytes: int
    cpu_seconds: float
    peak_memory_bytes: int  #: of the largest single process
    is_whole: bool  #: whether all that the program wrote is in it


def packed(kind: int, payload: bytes, at_ns: int | None = None) -> bytes:
    """A frame as it is in the file; of now, if no time is given."""
    if len(payload) > LARGEST_PAYLOAD:
        raise ValueError(f"a payload of {len(payload)} bytes, at most {LARGEST_PAYLOAD} fit")
    return HEADER.pack(kind, len(payload), time.time_ns() if at_ns is None else at_ns) + payload


def packed_json(kind: int, content: object, at_ns: int | None = None) -> bytes:
    """A frame with JSON in it; a named tuple becomes an object with its fields."""
    if isinstance(content, Reading | Totals):
        content = content._asdict()
    return packed(kind, json.dumps(content, separators=(",", ":")).encode(), at_ns)


def packed_output(kind: int, position: int, data: bytes, at_ns: int) -> bytes:
    """A frame of what the program wrote."""
    return packed(kind, POSITION.pack(position) + data, at_ns)


def frames(buffer: bytes) -> tuple[list[Frame], bytes]:
    """All whole frames, and the bytes of one that has not ended: to be had before the next ones.

    Raises Damaged if the bytes cannot be those of a journal.
    """
    found: list[Frame] = []
    start = 0
    for kind, at_ns, begin, end in _spans(buffer):
        found.append(Frame(kind, at_ns, buffer[begin:end]))
        start = end
    return found, buffer[start:]


def _spans(buffer: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Kind, time, and where the payload begins and ends: of all whole frames."""
    start, size = 0, len(buffer)
    while start + HEADER.size <= size:
        kind, length, at_ns = HEADER.unpack_from(buffer, start)
        if not kind:  # what a file system puts where a power cut took what was written
            raise Damaged("a frame of no kind")
        if length > LARGEST_PAYLOAD:
            raise Damaged(f"a frame of {length} bytes, at most {LARGEST_PAYLOAD} were expected")
        begin = start + HEADER.size
        start = begin + length
        if start > size:
            return
        yield kind, at_ns, begin, start


class Journal:
    """Append frames. One writer at a time.

    On a full disk its methods raise OSError. What the disk did not take is kept, and goes first the
    next time; ``settle`` is that and nothing else. So nothing that was begun is ever cut off:
    somebody may have read it.
    """

    __slots__ = ("_after", "_before", "_can_splice", "_descriptor", "_owed", "_source")

    def __init__(self, path: str) -> None:
        """Open it, or make it. After a writer that was killed, ``recover`` comes first."""
        # Not for appending: the kernel moves nothing from a pipe into such a file.
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.lseek(self._descriptor, 0, os.SEEK_END)
        self._before = self._after = b""
        self._owed, self._source = 0, -1
        self._can_splice = True

    def append(self, content: bytes) -> None:
        """Add whole frames."""
        if self._owed:
            self._after += content
        else:
            self._before += content
        self.settle()

    def append_from(self, pipe: int, kind: int, size: int) -> None:
        """Add a frame of so many bytes, which are in the pipe. They are never in our memory, so
        that a kill can lose none; see ``recover``.
        """
        self.settle()
        self._before = HEADER.pack(kind, size, time.time_ns())
        self._owed, self._source = size, pipe
        self.settle()

    def settle(self) -> None:
        """Write what could not be written before."""
        while self._before or self._owed:
            if self._before:
                self._before = self._before[os.write(self._descriptor, self._before) :]
            else:
                self._owed -= self._move()
        while self._after:
            self._after = self._after[os.write(self._descriptor, self._after) :]

    def _move(self) -> int:
        if self._can_splice:
            try:
                return os.splice(self._source, self._descriptor, self._owed)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                self._can_splice = False  # this file system cannot; a kill may now cost one read
        self._before = os.read(self._source, self._owed)
        return len(self._before)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


def recover(path: str, *, mends: bool = False) -> Iterator[Frame]:
    """All whole frames of a journal, oldest first; then cut off one that was not finished.

    For a writer that comes after one that was killed: nobody else may be reading, since readers
    live in the same container. A journal that is damaged is cut off where it is. ``mends``: a frame
    that was on its way out of a pipe is not cut off but made as long as it is, since the pipe does
    not have those bytes any more.
    """
    with contextlib.suppress(FileNotFoundError), open(path, "r+b", buffering=0) as file:  # noqa: PTH123
        whole, rest = 0, b""
        with contextlib.suppress(Damaged):
            while piece := file.read(_PIECE_BYTES):
                found, rest = frames(rest + piece)
                for frame in found:
                    whole += HEADER.size + len(frame.payload)
                    yield frame
        if mends and len(rest) > HEADER.size and rest[0] == Kind.EMITTED:
            _, _, at_ns = HEADER.unpack_from(rest)
            payload = rest[HEADER.size :]
            os.pwrite(file.fileno(), HEADER.pack(Kind.EMITTED, len(payload), at_ns), whole)
            whole += len(rest)
            yield Frame(Kind.EMITTED, at_ns, payload)
        file.truncate(whole)
