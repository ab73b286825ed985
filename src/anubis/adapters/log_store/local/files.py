"""Names of the files of a run, and how a file is put in place.

Files of a run lie side by side in one of 256 folders, chosen by the end of the run's id: ids
begin with the time, so their beginning would put all runs of a year into one folder.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from anubis.domain.errors import LeaseLost, StoreUnavailable
from anubis.domain.run import RunId


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LogFiles:
    """The files that may exist for one run. A run without output has none."""

    log: Path
    index: Path  #: full-text index, for large logs only
    new_log: Path  #: being written, becomes ``log``
    new_index: Path  #: being written, becomes ``index``

    @classmethod
    def of(cls, root: Path, run_id: RunId) -> LogFiles:
        """The files of one run under ``root``."""
        folder = root / run_id[-2:]
        return cls(
            log=folder / f"{run_id}.log",
            index=folder / f"{run_id}.fts",
            new_log=folder / f"{run_id}.log.new",
            new_index=folder / f"{run_id}.fts.new",
        )

    def delete(self) -> None:
        """Remove whatever there is. The index goes first: it must never outlive its log."""
        for path in (self.index, self.new_index, self.log, self.new_log):
            path.unlink(missing_ok=True)


def create(path: Path) -> int:
    """A new empty file, open for appending and reading; whatever had the name is unlinked.

    Raises StoreUnavailable.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        return os.open(path, flags, 0o600)
    except OSError as error:
        raise StoreUnavailable(
            f"No log can be created in {path.parent}: {error.strerror}."
        ) from error


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, however often the system stops short. Raises StoreUnavailable."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise StoreUnavailable(f"The log cannot be written: {error.strerror}.") from error


def check_owner(descriptor: int, path: Path) -> None:
    """Raise LeaseLost if ``path`` is no longer the file we write: somebody started it anew."""
    ours = os.fstat(descriptor)
    try:
        there = path.stat()
    except FileNotFoundError:
        there = None
    if there is None or (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
        raise LeaseLost("Another worker collects this run now: its log was started anew.")
