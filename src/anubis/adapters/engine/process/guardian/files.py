"""The names in a run's directories, and how to write one that must survive a crash.

Each unit has a directory of its own, called ``<run>`` for the unit of a run that needs only one and
``<run>.<unit>`` for others. To whoever guards them, units are these names, and nothing more.

In that directory, on the disk:

lock         held by the shim while it lives: its identity, free of the reuse of process ids
journal      when which byte was seen, and resource readings; its existence means "was started"
stdout       what was read from the FIFO (the same for stderr; ``emit`` is kept in ``emitted``)
work         where the program runs when its plan names no directory
status.json  how it ended; the last thing written

In its ``live`` directory, in memory, because it means nothing after a restart of the machine, and
because a new file costs a disk's file system up to a hundred times as much:

spec.json    what to run; written by the engine before the zygote is asked
stdout.fifo  where the program writes; a FIFO because ``>/dev/stdout`` would truncate a file
control      a FIFO that wakes the shim; ``stop.json`` holds the request
defect.json  why a shim gave up; here, for a full disk may be the reason
"""
# pathlib would cost a zygote 5 ms at its start, and each call ten times its time.
# ruff: noqa: PTH102, PTH104, PTH110, PTH112, PTH116, PTH119, PTH120

from __future__ import annotations

import fcntl
import functools
import json
import os
import stat
import zlib

SOLE = "benchmark"  #: the unit whose directory bears the name of the run alone; a test keeps it

SPEC, LOCK, JOURNAL, STATUS = "spec.json", "lock", "journal", "status.json"
CONTROL, STOP, DEFECT, WORK = "control", "stop.json", "defect.json", "work"
CONTAINER = "container.json"  #: what a guard must know, where the unit is a container

STREAMS: tuple[tuple[str, str], ...] = (
    ("stdout.fifo", "stdout"),
    ("stderr.fifo", "stderr"),
    ("emit", "emitted"),
)
"""FIFO and file of each stream; the position in this table is the stream's number."""


MEMORY = "/dev/shm"  # noqa: S108 (a folder of our own in it, which only we may enter)


FIRST_PERSON, LOGIND = 1000, "/run/systemd/system"
"""Where systemd manages logins, it deletes what a person has in memory when they log out, and a run
must outlive that. It spares root and the users of services, whose numbers are smaller."""


@functools.cache
def memory() -> str | None:
    """Our folder in memory; None where there is none that only we may enter."""
    if os.getuid() >= FIRST_PERSON and os.path.isdir(LOGIND):
        return None
    folder = f"{MEMORY}/anubis-{os.getuid()}"
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except OSError:
        return None
    found = os.lstat(folder)
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return folder if is_ours and not found.st_mode & 0o077 else None


def name(run_id: str, unit: str) -> str:
    """What the directory of a unit is called."""
    return run_id if unit == SOLE else f"{run_id}.{unit}"


def owner(directory: str) -> tuple[str, str]:
    """The run and the unit that a directory belongs to."""
    run_id, _, unit = os.path.basename(directory).partition(".")
    return run_id, unit or SOLE


def live(directory: str) -> str:
    """Where the live names of a run are; every process of ours finds the same place."""
    folder = memory()
    if folder is None:
        return directory
    root = zlib.crc32(os.path.dirname(directory).encode("utf-8", "surrogateescape"))
    return f"{folder}/{root:08x}-{os.path.basename(directory)}"


def write_durably(directory: str, name: str, content: bytes, *, sync: bool) -> None:
    """Replace a file so that a reader sees the old or the new one, never a part.

    With ``sync``, both its content and its name survive a power cut once this returns. One sync
    after the renaming brings both to the disk on the journaling file systems of Linux; a cut before
    it may leave an empty file, which ``read_json`` takes for none.
    """
    path = f"{directory}/{name}"
    descriptor = os.open(f"{path}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, content)
        os.rename(f"{path}.tmp", path)
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Write to the last byte: a disk that is almost full takes a part without an error."""
    while content:
        content = content[os.write(descriptor, content) :]


def read_json(directory: str, name: str) -> dict[str, object] | None:
    """A JSON object of ours, or None if it is not there or not whole."""
    try:
        descriptor = os.open(f"{directory}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        text = file.read()
    try:
        content = json.loads(text)
    except ValueError:  # cut off by a crash of the machine
        return None
    return content if isinstance(content, dict) else None


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
    try:
        return os.stat(f"{directory}/{STATUS}").st_size > 0
    except FileNotFoundError:
        return False


def is_container(directory: str) -> bool:
    """Whether the unit is a container: then its processes are the daemon's, and not ours to end."""
    return os.path.exists(f"{directory}/{CONTAINER}")


def was_started(directory: str) -> bool:
    """Whether somebody took the right to start this run, whatever became of it."""
    return os.path.exists(f"{directory}/{JOURNAL}")
