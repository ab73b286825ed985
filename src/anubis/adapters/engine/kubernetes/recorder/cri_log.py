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
from anubis.adapters.engine.kubernetes.recording import Kind

READ_BYTES: Final = 256 * 1024
PIECE_BYTES: Final = 64 * 1024
_MOMENT: Final = len("2016-10-06T00:17:09.669")
"""Lines of one stream and one millisecond are one piece: nobody needs their times apart."""

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
        self.is_behind = False  #: whether there was more than the last read took
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
        self.is_behind = len(data) == READ_BYTES
        yield from self._pieces(self._whole_lines(data))

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

    def _whole_lines(self, data: bytes) -> list[bytes]:
        *whole, rest = data.split(b"\n")
        if whole:
            whole[0] = self._rest + whole[0]
            self._rest = rest
        else:
            self._rest += rest
        return whole

    def _pieces(self, lines: list[bytes]) -> Iterator[Piece]:
        """All lines; those of one stream and one millisecond together.

        A program may write a million lines in a second, so this is written for speed: the time is
        read for the first of a piece only.
        """
        key, parts, size = (b"", b""), list[bytes](), 0
        kind, at_ns, end = Kind.STDOUT, 0, self.position
        for line in lines:
            words = line.split(b" ", 3)
            if parts and len(words) == 4 and (words[0][:_MOMENT], words[1]) == key:
                data = words[3] + b"\n" if words[2][:1] == b"F" else words[3]
                if size + len(data) <= PIECE_BYTES:
                    parts.append(data)
                    size += len(data)
                    end += len(line) + 1
                    continue
            if parts:
                yield Piece(kind, at_ns, b"".join(parts), end)
                parts, size = [], 0
            end += len(line) + 1
            self.position = end
            try:
                kind, at_ns, data = cri_line.parse(line, self._clock)
            except ValueError:
                self.unreadable += 1
                continue
            key, parts, size = (words[0][:_MOMENT], words[1]), [data], len(data)
        if parts:
            yield Piece(kind, at_ns, b"".join(parts), end)
        self.position = end

    def close(self) -> None:
        """Let go of all files."""
        for file in (self._file, *(file for _, file in self._queue)):
            if file is not None:
                file.close()
