"""One line of a container's log, as every Kubernetes runtime writes them.

``2016-10-06T00:17:09.669794202Z stdout F what the program wrote``: a time, a stream, whether the
program's line ended here (``F``) or goes on (``P``), and the bytes themselves. A line that is too
long for the runtime comes in several, and so does one that is on its way when the file changes;
a last line without an end stays ``P``. So the program's bytes can be had back exactly.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from anubis.adapters.engine.kubernetes.recording import Kind

_KINDS: Final = {b"stdout": Kind.STDOUT, b"stderr": Kind.STDERR}
_DAYS_BEFORE: Final = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_STAMP_CHARACTERS: Final = 19  #: of a time, up to its seconds


class Line(NamedTuple):
    """What the program wrote at one moment."""

    kind: Kind
    at_ns: int
    data: bytes


class Clock:
    """Reads the times of a log. Most of them share their second, which is then read once."""

    __slots__ = ("_known", "_seconds")

    def __init__(self) -> None:
        self._known = b""
        self._seconds = 0

    def nanoseconds(self, stamp: bytes) -> int:
        """Since 1970. Raises ValueError for what is no time."""
        second, rest = stamp[:_STAMP_CHARACTERS], stamp[_STAMP_CHARACTERS:]
        if second != self._known:
            self._seconds = _seconds(second)
            self._known = second
        if rest[-1:] == b"Z":
            fraction, offset = rest[:-1], 0
        else:
            fraction, offset = rest[:-6], _offset(rest[-6:])
        digits = fraction[1:10].ljust(9, b"0")
        return (self._seconds - offset) * 10**9 + int(digits)


def parse(line: bytes, clock: Clock) -> Line:
    """Read one line, without its end. Raises ValueError if it is none of a container's log."""
    stamp, stream, tags, content = line.split(b" ", 3)
    kind = _KINDS.get(stream)
    if kind is None or tags[:1] not in b"FP":
        raise ValueError("neither stdout nor stderr, or neither whole nor part")
    return Line(kind, clock.nanoseconds(stamp), content + b"\n" if tags[:1] == b"F" else content)


def _seconds(stamp: bytes) -> int:
    """``2016-10-06T00:17:09`` since 1970; by hand, since the library for it is large and slow."""
    year, month, day = int(stamp[:4]), int(stamp[5:7]), int(stamp[8:10])
    if not (1 <= month <= 12 and stamp[10:11] == b"T"):
        raise ValueError(f"no time: {stamp!r}")
    past = year - 1
    days = past * 365 + past // 4 - past // 100 + past // 400 - 719162
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days += _DAYS_BEFORE[month - 1] + day - 1 + (is_leap and month > 2)
    return ((days * 24 + int(stamp[11:13])) * 60 + int(stamp[14:16])) * 60 + int(stamp[17:19])


def _offset(zone: bytes) -> int:
    """``+01:00`` in seconds."""
    if zone[:1] not in (b"+", b"-"):
        raise ValueError(f"no time zone: {zone!r}")
    seconds = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
    return -seconds if zone[:1] == b"-" else seconds
