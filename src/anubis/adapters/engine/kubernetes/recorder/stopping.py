"""Have the program stopped: by whoever asks, or because it ran or wrote too much.

A request is a small file beside the journal, so that a recorder which comes after one that was
killed goes on with it. The first cause counts; a later request can only shorten the patience.
"""
# pathlib costs megabytes beside every measurement, and each call ten times its time.
# ruff: noqa: PTH104, PTH108, PTH116, PTH118, PTH123, PTH200

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from anubis.adapters.engine.kubernetes.recorder.processes import Process
from anubis.adapters.engine.process.guardian import tree

STOP: Final = "stop"
RELEASED: Final = "released"
CAUSES: Final = ("canceled", "dismissed", "timed_out", "output_limit")
KILL_AGAIN_SECONDS: Final = 1.0
NEVER: Final = math.inf


class Request(NamedTuple):
    """That the program shall end."""

    grace: float  #: seconds between the friendly signal and the deadly one
    cause: str


def ask(folder: str, grace: float, cause: str) -> Request:
    """Ask for a stop; what counts then, together with what was asked before."""
    if cause not in CAUSES or not (math.isfinite(grace) and grace >= 0):
        raise ValueError(f"stop GRACE CAUSE: found {grace!r} {cause!r}, expected {CAUSES}")
    while True:
        earlier = asked(folder)
        counts = Request(min(grace, earlier.grace), earlier.cause) if earlier else None
        counts = counts or Request(grace, cause)
        if _put(folder, counts, is_first=earlier is None):
            return counts


def _put(folder: str, request: Request, *, is_first: bool) -> bool:
    """Write it down, whole or not at all; False if somebody else was the first."""
    place = os.path.join(folder, STOP)
    own = f"{place}.{os.getpid()}.{time.monotonic_ns()}"
    try:
        with open(own, "wb") as file:
            file.write(json.dumps(request._asdict()).encode())
        if is_first:
            os.link(own, place)
        else:
            os.rename(own, place)
    except FileExistsError:
        return False
    finally:  # also if the disk is full
        with contextlib.suppress(FileNotFoundError):
            os.unlink(own)
    return True


def asked(folder: str) -> Request | None:
    """What was asked for."""
    try:
        with open(os.path.join(folder, STOP), "rb") as file:
            told = json.loads(file.read())
    except FileNotFoundError:
        return None
    return Request(float(told["grace"]), str(told["cause"]))


def release(folder: str) -> None:
    """Say that all was fetched, and the recorder may go."""
    with open(os.path.join(folder, RELEASED), "wb"):
        pass


def is_released(folder: str) -> bool:
    """Whether somebody said so."""
    try:
        os.stat(os.path.join(folder, RELEASED))
    except FileNotFoundError:
        return False
    return True


class Stopping:
    """How far the program is on its way out."""

    __slots__ = ("_kill_at", "_was_asked", "request")

    def __init__(self) -> None:
        self.request: Request | None = None
        self._kill_at = NEVER
        self._was_asked = False  #: in the friendly way

    def begin(self, request: Request, now: float) -> bool:
        """Take in a request; whether it is the first."""
        is_first = self.request is None
        if is_first or request.grace < self.request.grace:  # type: ignore[union-attr] # see is_first
            self.request = request
            self._kill_at = min(self._kill_at, now + request.grace)
        return is_first

    def is_due(self, now: float) -> bool:
        """Whether a signal is."""
        return self.request is not None and (not self._was_asked or now >= self._kill_at)

    def signal(self, processes: Sequence[Process], now: float) -> None:
        """Send what is due to all of the program."""
        numbers = [one.number for one in processes]
        if not numbers or self.request is None:
            return
        if now >= self._kill_at:
            tree.send(signal.SIGKILL, numbers)
            self._kill_at = now + KILL_AGAIN_SECONDS
        elif not self._was_asked:
            tree.ask_to_end(numbers)
        self._was_asked = True


def parse_seconds(text: str) -> float:
    """The words of a command line. Raises ValueError."""
    with contextlib.suppress(ValueError):
        return float(text)
    raise ValueError(f"stop GRACE CAUSE: found {text!r}, expected a number of seconds")
