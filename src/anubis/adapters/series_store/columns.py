"""The format of a series file: frames that hold one compressed column per series.

A frame begins with a directory, so that reading one series touches only its own columns.
Instants are stored as differences, values as they are: differences of the bits of measured
values, or their bytes transposed, compressed worse on most kinds of metrics we tried. Both are
restored bit by bit, NaN and negative zero included. Numbers
are little-endian, as on every machine we run on.

========= ==================================================================
file      magic ``ANUBSER1``, eight random bytes that name this very file
frame     magic ``ANSF``, CRC-32 of the directory, bytes of the directory,
          bytes of all columns
directory zstd of a JSON list: unit, source, name, samples, bytes and CRC-32
          of each column
column    zstd of: differences of instants (i64), values (f64)
========= ==================================================================
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import struct
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping

import zstandard

from anubis.domain.errors import StoreUnusable
from anubis.domain.metric import MetricKey, MetricSource
from anubis.ports.series_store import Column

FILE_MAGIC = b"ANUBSER1"
FILE_HEADER_SIZE = 16

_HEADER = struct.Struct("<4sIII")
_FRAME_MAGIC = b"ANSF"
_LEVEL = 3

_FEW = 1_000
"""Below this many samples, importing NumPy costs more than it saves."""


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """Where one column of one series is."""

    key: MetricKey
    offset: int
    size: int
    samples: int
    checksum: int


def encode(columns: Mapping[MetricKey, Column]) -> bytes:
    """One frame."""
    directory = []
    blobs = []
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    for key, (instants, values) in columns.items():
        content = _differences(array("q", instants)) + array("d", values).tobytes()
        blob = compressor.compress(content)
        described = (key.unit, key.source.value, key.name, len(values), len(blob), zlib.crc32(blob))
        directory.append(described)
        blobs.append(blob)
    table = compressor.compress(json.dumps(directory).encode())
    blob_size = sum(len(blob) for blob in blobs)
    header = _HEADER.pack(_FRAME_MAGIC, zlib.crc32(table), len(table), blob_size)
    return b"".join([header, table, *blobs])


def frames(descriptor: int) -> Iterator[list[Entry]]:
    """The directories of all complete frames of a file. Raises StoreUnusable."""
    size = os.fstat(descriptor).st_size
    offset = FILE_HEADER_SIZE
    while offset + _HEADER.size <= size:
        head = os.pread(descriptor, _HEADER.size, offset)
        magic, checksum, table_size, blob_size = _HEADER.unpack(head)
        end = offset + _HEADER.size + table_size + blob_size
        if end > size or not any(head):  # being written, or never finished
            return
        table = os.pread(descriptor, table_size, offset + _HEADER.size)
        if magic != _FRAME_MAGIC or zlib.crc32(table) != checksum:
            raise StoreUnusable(f"The series file is damaged at byte {offset}.")
        yield list(_entries(table, offset + _HEADER.size + table_size))
        offset = end


def decode(descriptor: int, entry: Entry) -> tuple[array[int], array[float]]:
    """The instants and values of one column. Raises StoreUnusable."""
    blob = os.pread(descriptor, entry.size, entry.offset)
    if zlib.crc32(blob) != entry.checksum:
        raise StoreUnusable(f"The series file is damaged at byte {entry.offset}.")
    content = zstandard.ZstdDecompressor().decompress(blob)
    middle = entry.samples * 8
    return _sums(content[:middle]), array("d", content[middle:])


def _entries(table: bytes, offset: int) -> Iterator[Entry]:
    described = json.loads(zstandard.ZstdDecompressor().decompress(table))
    for unit, source, name, samples, size, checksum in described:
        key = MetricKey(unit=unit, name=name, source=MetricSource(source))
        yield Entry(key, offset, size, samples, checksum)
        offset += size


def _differences(instants: array[int]) -> bytes:
    if len(instants) < _FEW:
        pairs = itertools.pairwise(itertools.chain([0], instants))
        return array("q", [later - earlier for earlier, later in pairs]).tobytes()
    import numpy as np  # here: most runs have few samples and need not wait for it

    return np.diff(np.asarray(instants, dtype=np.int64), prepend=0).tobytes()


def _sums(differences: bytes) -> array[int]:
    if len(differences) < _FEW * 8:
        return array("q", itertools.accumulate(array("q", differences)))
    import numpy as np  # here: most runs have few samples and need not wait for it

    sums = np.cumsum(np.frombuffer(differences, dtype=np.int64), dtype=np.int64)
    return array("q", sums.tobytes())


def merged(frames_of: Iterable[list[Entry]], descriptor: int, most: int) -> Iterator[bytes]:
    """The same samples in as few frames as possible, each of about ``most`` samples at most."""
    columns: dict[MetricKey, tuple[array[int], array[float]]] = {}
    held = 0
    for entries in frames_of:
        for entry in entries:
            instants, values = decode(descriptor, entry)
            column = columns.setdefault(entry.key, (array("q"), array("d")))
            column[0].extend(instants)
            column[1].extend(values)
            held += entry.samples
        if held >= most:
            yield encode(columns)
            columns, held = {}, 0
    if columns:
        yield encode(columns)
