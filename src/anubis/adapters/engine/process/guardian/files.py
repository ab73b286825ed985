"""The names in a run's directory, and how to write one that must survive a crash.

spec.json    what to run; written by the engine before the zygote is asked
lock         held by the shim while it lives: its identity, free of the reuse of process ids
journal      when which byte was seen, and resource readings; its existence means "was started"
stdout.fifo  where the program writes; a FIFO because ``>/dev/stdout`` would truncate a file
stdout       what was read from there (the same for stderr; ``emit`` is kept in ``emitted``)
control      a FIFO that wakes the shim; ``stop.json`` holds the request
defect.json  why a shim gave up, if it could still say so
work         where the program runs when its plan names no directory
status.json  how it ended; the last thing written
"""
# pathlib would cost a zygote 5 ms at its start, and each call ten times its time.
# ruff: noqa: PTH104, PTH110

from __future__ import annotations

import fcntl
import json
import os

SPEC, LOCK, JOURNAL, STATUS = "spec.json", "lock", "journal", "status.json"
CONTROL, STOP, DEFECT, WORK = "control", "stop.json", "defect.json", "work"

STREAMS: tuple[tuple[str, str], ...] = (
    ("stdout.fifo", "stdout"),
    ("stderr.fifo", "stderr"),
    ("emit", "emitted"),
)
"""FIFO and file of each stream; the position in this table is the stream's number."""


def write_durably(directory: str, name: str, content: bytes, *, sync: bool) -> None:
    """Replace a file so that a reader, or a crash, sees the old or the new one, never a part."""
    path = f"{directory}/{name}"
    descriptor = os.open(f"{path}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, content)
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(f"{path}.tmp", path)
    if sync:
        sync_path(directory)


def sync_path(path: str) -> None:
    """Bring a file or directory to the disk; do nothing if it does not exist."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_json(directory: str, name: str) -> dict[str, object] | None:
    """A JSON object of ours, or None if it is not there."""
    try:
        descriptor = os.open(f"{directory}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        content = json.loads(file.read())
    assert isinstance(content, dict)
    return content


def take_lock(directory: str) -> int | None:
    """Lock a run, for as long as the returned descriptor is open; None if somebody has it."""
    try:
        descriptor = os.open(f"{directory}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:  # the run was removed
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def has_ended(directory: str) -> bool:
    """Whether the final status was written."""
    return os.path.exists(f"{directory}/{STATUS}")


def was_started(directory: str) -> bool:
    """Whether somebody took the right to start this run, whatever became of it."""
    return os.path.exists(f"{directory}/{JOURNAL}")
