"""Where everything is in the cache's folder."""

from __future__ import annotations

import dataclasses
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

from anubis.domain.dataset import DatasetKey, DatasetKind
from anubis.domain.run import RunId

CONTENT = "content"
"""What the root of a directory is called in its object."""

LONGEST_NAME = 255
"""Bytes of a file's name."""


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """The folder, and what is where in it."""

    folder: Path

    @property
    def objects(self) -> Path:
        """Whole contents."""
        return self.folder / "objects"

    @property
    def references(self) -> Path:
        """What was asked for."""
        return self.folder / "references"

    @property
    def partial(self) -> Path:
        """Transfers that have not ended."""
        return self.folder / "partial"

    @property
    def pins(self) -> Path:
        """What runs use."""
        return self.folder / "pins"

    @property
    def locks(self) -> Path:
        """Flocks."""
        return self.folder / "locks"

    @property
    def removed(self) -> Path:
        """What is being deleted."""
        return self.folder / "removed"

    def make(self) -> None:
        """Create what is missing. Only its owner may enter: URIs can hold a signature."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for room in (self.objects, self.references, self.partial, self.pins):
            room.mkdir(mode=0o700, exist_ok=True)
        for room in (self.locks, self.removed):
            room.mkdir(mode=0o700, exist_ok=True)

    def reference(self, key: DatasetKey) -> Path:
        """The record of a reference."""
        return self.references / f"{key}.json"

    def pins_of(self, run: RunId) -> Path:
        """The pins of a run. Escaped: a name from elsewhere must not lead elsewhere."""
        return self.pins / urllib.parse.quote(run, safe="").replace(".", "%2E")

    def run_of(self, pins: Path) -> RunId:
        """The other way round."""
        return RunId(urllib.parse.unquote(pins.name))


def object_name(kind: DatasetKind, sha256: str) -> str:
    """The name of an object. A directory's digest is that of a text, which could be a file too."""
    return f"{'file' if kind is DatasetKind.FILE else 'tree'}-{sha256}"


def file_name(text: str) -> str:
    """How a single file is called here: the last part of its name, if that can be a name."""
    name = text.rpartition("/")[2].replace("\0", "")
    name = name.encode("utf-8", "surrogateescape")[-LONGEST_NAME:].decode("utf-8", "ignore")
    return "data" if name in {"", ".", ".."} else name


def is_path(name: str) -> bool:
    """Whether this is a path below a folder, which leads nowhere else."""
    parts = name.split("/")
    fits = all(len(part.encode("utf-8", "surrogateescape")) <= LONGEST_NAME for part in parts)
    return fits and "\0" not in name and not any(part in {"", ".", ".."} for part in parts)


def parents(name: str) -> Iterator[str]:
    """The folders that a path leads through."""
    while name := name.rpartition("/")[0]:
        yield name
