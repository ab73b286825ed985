"""Series as one file per run under a directory.

Nothing touches the disk before there is a sample. Every append is one frame, visible at once;
``seal`` merges the frames, so that each series lies together, and makes the file durable.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import weakref
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from anubis.adapters.series_store import columns as fileformat
from anubis.domain.errors import LeaseLost, StoreUnavailable, StoreUnusable
from anubis.domain.metric import MetricKey
from anubis.domain.run import RunId
from anubis.ports.series_store import Column

INLINE_SAMPLES = 2_000
"""Appends up to this size take less than a millisecond; larger ones go to a thread."""

MOST_FRAMES = 4
"""With no more frames than this, merging them would cost more than it gains."""

MERGED_SAMPLES = 4_000_000
"""Samples in a merged frame: 64 MB of memory while it is made."""


class DirectorySeriesStore:
    """One file per run under ``root``, in 256 folders by the end of the run's id."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def writer(self, run_id: RunId) -> DirectorySeriesWriter:
        """Start the series of a run anew. Creates nothing until there are samples."""
        await self.delete(run_id)
        return DirectorySeriesWriter(self._path(run_id))

    async def keys(self, run_id: RunId) -> Sequence[MetricKey]:
        """Which series the run has, ordered by unit, source and name."""
        return await asyncio.to_thread(_keys, self._path(run_id))

    async def read(self, run_id: RunId, key: MetricKey) -> Column:
        """All samples of one series, in order of arrival."""
        return await asyncio.to_thread(_read, self._path(run_id), key)

    async def delete(self, run_id: RunId) -> None:
        """Forget all series of the run."""
        path = self._path(run_id)
        path.unlink(missing_ok=True)
        _unfinished(path).unlink(missing_ok=True)

    def _path(self, run_id: RunId) -> Path:
        return self._root / run_id[-2:] / f"{run_id}.series"


class DirectorySeriesWriter:
    """Appends to one series file. Used by one task at a time.

    After a StoreUnavailable (the disk is full, say) a frame may be missing or torn: drop this
    writer, and start the series anew when trying again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._frames = 0
        self._descriptor: int | None = None
        self._closing: weakref.finalize[[int], DirectorySeriesWriter] | None = None

    async def append(self, columns: Mapping[MetricKey, Column]) -> None:
        """Add samples as one frame."""
        samples = sum(len(values) for _, values in columns.values())
        if samples == 0:
            return
        if samples <= INLINE_SAMPLES:
            self._append(columns)
        else:
            await asyncio.to_thread(self._append, columns)

    async def values(self, key: MetricKey) -> Sequence[float]:
        """All values of one series so far."""
        _, values = await asyncio.to_thread(_read, self._path, key)
        return values

    async def seal(self) -> None:
        """Merge the frames and make the file durable."""
        if self._descriptor is not None:
            await asyncio.to_thread(self._seal)

    def _append(self, columns: Mapping[MetricKey, Column]) -> None:
        data = fileformat.encode({key: column for key, column in columns.items() if column[1]})
        if self._descriptor is None:
            self._open(_create(self._path))
        assert self._descriptor is not None
        _write_all(self._descriptor, data)
        self._frames += 1

    def _seal(self) -> None:
        assert self._descriptor is not None
        self._check_owner(self._descriptor)
        if self._frames > MOST_FRAMES:
            self._open(self._merge(self._descriptor))
        # After the rename on purpose: the name becomes durable with the content, for one fsync.
        os.fsync(self._descriptor)
        self._close()

    def _check_owner(self, descriptor: int) -> None:
        """Raise LeaseLost if our file has been replaced: then it is no longer ours to change."""
        ours = os.fstat(descriptor)
        there = self._path.stat() if self._path.exists() else None
        if there is None or (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
            raise LeaseLost("Another worker collects this run now: its series were started anew.")

    def _merge(self, descriptor: int) -> int:
        frames = fileformat.frames(descriptor)
        return _create(self._path, fileformat.merged(frames, descriptor, MERGED_SAMPLES))

    def _open(self, descriptor: int) -> None:
        """Own a descriptor; it is closed when we are done, or dropped in the middle of the work."""
        self._close()
        self._descriptor = descriptor
        self._closing = weakref.finalize(self, os.close, descriptor)

    def _close(self) -> None:
        if self._closing is not None:
            self._closing()
        self._descriptor = None


def _unfinished(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def _create(path: Path, frames: Iterable[bytes] = ()) -> int:
    """A new file with these frames; readers see it whole or not at all. Raises StoreUnavailable."""
    unfinished = _unfinished(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.unlink(missing_ok=True)
        descriptor = os.open(unfinished, flags, 0o600)
    except OSError as error:
        raise StoreUnavailable(
            f"No series can be stored in {path.parent}: {error.strerror}."
        ) from error
    try:
        _write_all(descriptor, fileformat.FILE_MAGIC + secrets.token_bytes(8))
        for data in frames:
            _write_all(descriptor, data)
        unfinished.rename(path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise StoreUnavailable(f"Samples cannot be written: {error.strerror}.") from error


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int | None]:
    """A descriptor of the file, or None if there is none. Raises StoreUnusable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        head = os.pread(descriptor, fileformat.FILE_HEADER_SIZE, 0)
        if not head.startswith(fileformat.FILE_MAGIC):
            raise StoreUnusable("The series file is damaged or was written by a newer version.")
        yield descriptor
    finally:
        os.close(descriptor)


def _keys(path: Path) -> Sequence[MetricKey]:
    with _opened(path) as descriptor:
        frames = fileformat.frames(descriptor) if descriptor is not None else ()
        keys = {entry.key for entries in frames for entry in entries}
    return sorted(keys, key=lambda key: (key.unit, key.source, key.name))


def _read(path: Path, key: MetricKey) -> tuple[array[int], array[float]]:
    instants, values = array("q"), array("d")
    with _opened(path) as descriptor:
        if descriptor is None:
            return instants, values
        for entries in fileformat.frames(descriptor):
            for entry in entries:
                if entry.key == key:
                    more_instants, more_values = fileformat.decode(descriptor, entry)
                    instants.extend(more_instants)
                    values.extend(more_values)
    return instants, values
