"""The files of a container's log: the one that grows, and those that it was before.

The kubelet renames a log that has become too large (``0.log.20240131-100000``), has the runtime
begin a new one, compresses what it renamed earlier (``….gz``), and deletes all but the last few. A
file is known again by its first line, whose time to the nanosecond no other has: names, inodes and
sizes change on the way.
"""
# pathlib costs megabytes beside every measurement, and each call ten times its time.
# ruff: noqa: PTH118, PTH208, PTH123

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO, Final, NamedTuple

from anubis.adapters.engine.kubernetes.recorder import cri_line

CURRENT: Final = "0.log"
"""The number counts restarts of a container, and a benchmark has none."""

HEAD_BYTES: Final = 128
_COMPRESSED: Final = ".gz"
_UNFINISHED: Final = ".tmp"  #: of the kubelet, while it compresses


class Head(NamedTuple):
    """What a file is known by."""

    first: bytes  #: the beginning of its first line
    at_ns: int


def names(folder: str) -> list[str]:
    """All files of the log, oldest first; one that is there twice, as it is, counts once."""
    try:
        found = [name for name in os.listdir(folder) if name.startswith(f"{CURRENT}.")]
    except FileNotFoundError:
        return []
    whole = {name.removesuffix(_COMPRESSED): name for name in sorted(found, reverse=True)}
    # Sorted backwards, the one that is not compressed comes last, and stays.
    stamped = sorted(stem for stem in whole if not stem.endswith(_UNFINISHED))
    return [*(whole[stem] for stem in stamped), CURRENT]


def opened(folder: str, name: str) -> IO[bytes]:
    """Open one for reading. Raises OSError if it is gone: renamed, compressed or deleted."""
    path = os.path.join(folder, name)
    if not name.endswith(_COMPRESSED):
        return open(path, "rb", buffering=0)
    import gzip  # only who was away for long finds such files

    return gzip.open(path)  # type: ignore[return-value] # all that is done with it here


def head(file: IO[bytes], clock: cri_line.Clock) -> Head | None:
    """What a file is known by; None while its first line is not there. Moves to its beginning."""
    file.seek(0)
    start = file.read(HEAD_BYTES)
    file.seek(0)
    first, _, rest = start.partition(b"\n")
    if not rest and len(start) < HEAD_BYTES and not start.endswith(b"\n"):
        return None
    try:
        return Head(first, clock.nanoseconds(first.split(b" ", 1)[0]))
    except ValueError:  # not a line of a log: the runtime was killed in the middle of one
        return Head(first, 0)


class Found(NamedTuple):
    """What a look at the folder gave."""

    files: list[tuple[Head, IO[bytes]]]  #: oldest first
    is_whole: bool  #: whether nothing between what was known and these can be missing


def newer(folder: str, than: Head | None) -> Found:
    """The files that come after the one with this head; all, if there is none.

    They stay open: so what the kubelet compresses or deletes later can still be read.
    """
    while True:
        before = names(folder)
        found = list(_opened(folder, before))
        if names(folder) == before:
            break
        for _, file in found:  # renamed meanwhile: one may be missing, or there twice
            file.close()
    heads = [one for one, _ in found]
    is_known = than is None or than in heads
    first = heads.index(than) + 1 if than is not None and is_known else 0
    for _, file in found[:first]:
        file.close()
    wanted = []
    for one, file in found[first:]:
        if is_known or than is None or one.at_ns > than.at_ns:
            wanted.append((one, file))
        else:
            file.close()
    return Found(wanted, is_known or not wanted)


def _opened(folder: str, found: list[str]) -> Iterator[tuple[Head, IO[bytes]]]:
    clock = cri_line.Clock()
    for name in found:
        try:
            file = opened(folder, name)
        except OSError:  # on its way to another name: it will be looked for again
            continue
        one = head(file, clock)
        if one is None:
            file.close()
        else:
            yield one, file
