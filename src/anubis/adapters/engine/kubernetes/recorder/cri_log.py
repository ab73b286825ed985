"""Follow what the runtime keeps of a program's output, over all changes of its files.

The kubelet looks at the size of logs every few seconds and the files it puts away stay for a while.
We look more often, and open each new file at once. So nothing is missed while we live, however far
behind we read; whoever comes after one of us that was killed finds its place again by the first
line of a file, and only if that was deleted meanwhile can something be missing: then it is said.
"""
# pathlib costs megabytes beside every measurement, and each call ten times its time.
# ruff: noqa: PTH116, PTH118

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Iterator
from typing import IO, Final, NamedTuple

from anubis.adapters.engine.kubernetes.recorder import cri_files, cri_line
from anubis.adapters.engine.kubernetes.recorder.cri_files import Head
from anubis.adapters.engine.kubernetes.recorder.cri_line import Line
from anubis.adapters.engine.kubernetes.recording import Kind

READ_BYTES: Final = 256 * 1024
PIECE_BYTES: Final = 64 * 1024
MERGE_NS: Final = 1_000_000
"""Lines of one stream within a millisecond are one piece: nobody needs their times apart."""

LOOK_SECONDS: Final = 0.25
SETTLE_SECONDS: Final = 0.5
"""How long a file that was put away may still grow. The runtime has its last bytes in memory only
while it begins the next file: microseconds."""


class Piece(NamedTuple):
    """Something for the journal."""

    kind: Kind
    at_ns: int
    data: bytes
    position: int  #: of the log, over all its files, where this ends


class Place(NamedTuple):
    """Where a reader stood: in which file, where that begins, and how far the log was read."""

    head: Head
    base: int
    position: int

    def packed(self) -> bytes:
        """For the journal."""
        told = {"first": self.head.first.hex(), "at_ns": self.head.at_ns, "base": self.base}
        return json.dumps(told, separators=(",", ":")).encode()

    @classmethod
    def unpacked(cls, told: dict[str, object]) -> Place:
        """What ``packed`` wrote. Raises KeyError, ValueError."""
        head = Head(bytes.fromhex(str(told["first"])), int(str(told["at_ns"])))
        base = int(str(told["base"]))
        return cls(head, base, base)


class Log:
    """The output of one container, from a place on."""

    def __init__(self, folder: str, place: Place | None = None) -> None:
        self._folder = folder
        self._clock = cri_line.Clock()
        self._queue: deque[tuple[Head, IO[bytes]]] = deque()
        self._file: IO[bytes] | None = None
        self._head: Head | None = None  #: of the newest file that we have opened
        self._rest = b""
        self._looked_at = self._changed_at = 0.0
        self._inode = 0
        self.position = 0
        self.is_whole = True  #: whether nothing was missed
        self.unreadable = 0  #: lines that were none
        if place is not None:
            self._return_to(place)

    def _return_to(self, place: Place) -> None:
        self.position = place.position
        self._head = place.head
        for head, file in cri_files.newer(self._folder, None).files:
            if head == place.head:
                file.seek(place.position - place.base)
                self._file = file
                self._inode = os.fstat(file.fileno()).st_ino
            elif self._file is not None:
                self._append(head, file)
            else:
                file.close()
        if self._file is None:
            self._look()

    def read(self, *, is_over: bool = False) -> Iterator[Piece]:
        """What has come since, as far as one turn takes it; nothing when there is nothing new.

        ``is_over``: the runtime has closed all files, so each is at its end.
        """
        if is_over or time.monotonic() >= self._looked_at + LOOK_SECONDS:
            self._look()
            self._looked_at = time.monotonic()
        data = self._file.read(READ_BYTES) if self._file else b""
        if not data and self._queue and (is_over or self._is_settled()):
            yield self._begin_next()
            data = self._file.read(READ_BYTES) if self._file else b""
        yield from self._merged(self._lines(data))

    def _is_settled(self) -> bool:
        return self._file is None or time.monotonic() >= self._changed_at + SETTLE_SECONDS

    def _look(self) -> None:
        """See whether there are files that we have not."""
        try:
            inode = os.stat(os.path.join(self._folder, cri_files.CURRENT)).st_ino
        except FileNotFoundError:
            return
        if inode == self._inode:
            return
        found = cri_files.newer(self._folder, self._head)
        self.is_whole = self.is_whole and found.is_whole
        for head, file in found.files:
            self._append(head, file)

    def _append(self, head: Head, file: IO[bytes]) -> None:
        self._queue.append((head, file))
        self._head = head
        self._changed_at = time.monotonic()
        self._inode = os.fstat(file.fileno()).st_ino

    def _begin_next(self) -> Piece:
        if self._file is not None:
            self._file.close()
        if self._rest:  # the runtime was killed in the middle of a line
            self.unreadable += 1
            self.position += len(self._rest)
            self._rest = b""
        head, self._file = self._queue.popleft()
        place = Place(head, self.position, self.position)
        return Piece(Kind.FILE, head.at_ns, place.packed(), self.position)

    def _lines(self, data: bytes) -> Iterator[tuple[Line, int]]:
        """The whole lines, each with where it ends."""
        *whole, rest = data.split(b"\n")
        if whole:
            whole[0] = self._rest + whole[0]
            self._rest = rest
        else:
            self._rest += rest
        for line in whole:
            self.position += len(line) + 1
            try:
                yield cri_line.parse(line, self._clock), self.position
            except ValueError:
                self.unreadable += 1

    def _merged(self, lines: Iterator[tuple[Line, int]]) -> Iterator[Piece]:
        kind, at_ns, end = Kind.STDOUT, 0, 0
        parts: list[bytes] = []
        size = 0
        for line, position in lines:
            is_same = line.kind is kind and 0 <= line.at_ns - at_ns < MERGE_NS
            if parts and not (is_same and size < PIECE_BYTES):
                yield Piece(kind, at_ns, b"".join(parts), end)
                parts, size = [], 0
            if not parts:
                kind, at_ns = line.kind, line.at_ns
            parts.append(line.data)
            size += len(line.data)
            end = position
        if parts:
            yield Piece(kind, at_ns, b"".join(parts), end)

    def close(self) -> None:
        """Let go of all files."""
        for file in (self._file, *(file for _, file in self._queue)):
            if file is not None:
                file.close()
