"""Become the runtime of a home in the place of whoever is it now.

A background runtime is asked to leave: it holds nothing that the next one does not find. A service
is not: somebody started it on purpose, and its clients know its address.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from anubis.domain.errors import EngineUnavailable, NotPossible, StoreUnusable
from anubis.ports.clock import Clock
from anubis.runtime.locking import RuntimeLock

PATIENCE = 20.0
"""Seconds. A runtime leaves within a second; one that stores much output needs longer."""

LOOK_EVERY = 0.05


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Seat:
    """Where a home says who its runtime is. The lock decides; the rest is for finding it."""

    lock: Path
    pid: Path
    service: Path  #: exists while the runtime is a service


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Incumbent:
    """A service that is the runtime of a home."""

    pid: int
    address: str


async def take(seat: Seat, clock: Clock) -> RuntimeLock:
    """Hold the lock; a background runtime that has it is asked to leave.

    Raises NotPossible if a service has it, EngineUnavailable if the runtime does not leave.
    """
    lock = RuntimeLock(seat.lock)
    give_up = clock.monotonic() + PATIENCE
    asked: set[int] = set()
    while not lock.acquire():
        if service := incumbent(seat):
            raise NotPossible(
                f"a service is already the runtime of this home: process {service.pid} at "
                f"{service.address}; stop it first, or set ANUBIS_HOME to another folder"
            )
        if (pid := _runtime(seat)) and pid not in asked:
            asked.add(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        if clock.monotonic() > give_up:
            raise EngineUnavailable(
                f"the background runtime of this home (process {pid or 'unknown'}) does not leave; "
                f"{seat.lock} is held"
            )
        await clock.sleep(LOOK_EVERY)
    return lock


def incumbent(seat: Seat) -> Incumbent | None:
    """The living service of a home, if there is one."""
    try:
        note = json.loads(seat.service.read_text("utf-8"))
        service = Incumbent(pid=int(note["pid"]), address=str(note["address"]))
    except (OSError, ValueError, TypeError, KeyError):  # none, or being written
        return None
    return service if _has_open(service.pid, seat.lock) else None


def background(seat: Seat) -> int | None:
    """The process that is the background runtime of a home; None if a service is it, or nobody."""
    return None if seat.service.exists() else _runtime(seat)


async def dismiss(seat: Seat, pid: int, clock: Clock) -> bool:
    """Ask this very runtime to leave; whether it has. Whoever comes after it is not asked."""
    give_up = clock.monotonic() + PATIENCE
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    while _has_open(pid, seat.lock):
        if clock.monotonic() > give_up:
            return False
        await clock.sleep(LOOK_EVERY)
    return True


@contextlib.contextmanager
def announced(seat: Seat, address: str) -> Iterator[None]:
    """Say in the home that we are its runtime, and where we listen. The lock must be held.

    Raises StoreUnusable if that cannot be written: the next service would take us for a background
    runtime, and ask us to leave.
    """
    note = {"pid": os.getpid(), "address": address}
    draft = seat.service.with_suffix(".new")
    try:
        draft.write_text(json.dumps(note) + "\n", "utf-8")
        draft.replace(seat.service)
        seat.pid.write_text(f"{os.getpid()}\n")
    except OSError as error:
        raise StoreUnusable(f"{seat.service} cannot be written ({error.strerror})") from error
    try:
        yield
    finally:
        seat.service.unlink(missing_ok=True)
        seat.pid.unlink(missing_ok=True)


def _runtime(seat: Seat) -> int | None:
    """The process that is the runtime; its number may be of another one by now, so we look."""
    try:
        pid = int(seat.pid.read_text())
    except (OSError, ValueError):  # it has not written it yet, or is leaving
        return None
    return pid if _has_open(pid, seat.lock) else None


def _has_open(pid: int, path: Path) -> bool:
    """Whether a process of ours has this very file open."""
    try:
        wanted = path.stat()
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.path.samestat(entry.stat(), wanted):
                    return True
    except OSError:  # it has ended, or is somebody else's
        return False
    return False
