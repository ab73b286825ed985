"""The record of a reference: which object it is, and how to see that nobody changed it."""

from __future__ import annotations

import dataclasses
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypedDict, cast

from anubis.adapters.dataset_cache.directory import layout, linux
from anubis.domain.dataset import Dataset, DatasetKey, DatasetKind, Reference, checksum

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Stamp(TypedDict):
    """What a look without reading tells. Of a directory, its root alone: the time of a hit must not
    depend on the number of files.
    """

    size: int
    modified: int
    inode: int


class Record(TypedDict):
    """As it is written."""

    uri: str
    checksum: str
    unpack: bool
    kind: str
    object: str
    name: str
    digest: str
    size: int
    files: int
    fetched: str
    listing: str  #: what the source's versions were; empty if it has none
    stamp: Stamp


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """A record as it was read, and when it was last used."""

    key: DatasetKey
    record: Record
    used_at: datetime

    @property
    def fetched_at(self) -> datetime:
        """When its transfer ended."""
        return datetime.fromisoformat(self.record["fetched"])

    def dataset(self, objects: Path, pinned_by: tuple[str, ...]) -> Dataset:
        """As others see it."""
        record = self.record
        reference = Reference(
            uri=record["uri"], checksum=checksum(record["checksum"]), unpack=record["unpack"]
        )
        return Dataset(
            key=self.key,
            reference=reference,
            kind=DatasetKind(record["kind"]),
            path=str(objects / record["object"] / record["name"]),
            digest=record["digest"],
            size_bytes=record["size"],
            files=record["files"],
            fetched_at=self.fetched_at,
            used_at=self.used_at,
            pinned_by=pinned_by,
        )


def read(path: Path) -> Known | None:
    """The record in a file; None if there is none, or none that can be understood."""
    try:
        with path.open("rb") as file:
            record = cast("Record", json.loads(file.read()))
            used = os.fstat(file.fileno()).st_mtime_ns
        _ = (record["object"], record["name"], record["stamp"]["inode"], record["listing"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Known(key=DatasetKey(path.stem), record=record, used_at=moment(used))


def write(path: Path, record: Record, used_at: datetime) -> None:
    """Durably, and as a whole: a reader finds the old one or the new one."""
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        file.write(json.dumps(record).encode())
        file.flush()
        os.fsync(file.fileno())
    use(new, used_at)
    new.replace(path)
    linux.sync(path.parent)


def use(path: Path, at: datetime) -> None:
    """Note that it is used now."""
    nanoseconds = (at - _EPOCH) // timedelta(microseconds=1) * 1000
    os.utime(path, ns=(nanoseconds, nanoseconds))


def moment(nanoseconds: int) -> datetime:
    """A file's time, without the rounding of floats."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def stamp(path: Path) -> Stamp:
    """What a look at a content tells. Raises FileNotFoundError."""
    found = path.stat()
    return Stamp(size=found.st_size, modified=found.st_mtime_ns, inode=found.st_ino)


def is_sound(objects: Path, record: Record) -> bool:
    """Whether the content is as it was put there, as far as a look tells."""
    try:
        return stamp(content(objects, record)) == record["stamp"]
    except OSError:
        return False


def content(objects: Path, record: Record) -> Path:
    """Where the content is. A record must not lead out of the cache, whoever wrote it."""
    return objects / layout.file_name(record["object"]) / layout.file_name(record["name"])
