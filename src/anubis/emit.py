"""Report metrics from inside a benchmark: ``from anubis.emit import emit``.

``emit({"loss": 0.3, "accuracy": 0.9})`` writes one JSON line to where Anubis listens. Any names
are allowed. The environment says where that is, and the engine sets it:

``BENCHMARK_AI``
    ``stdout`` (the default): the line is printed. ``fifo``: it goes to a named pipe.
``BENCHMARK_AI_FIFO_FILEPATH``
    The pipe, which Anubis creates.
``BENCHMARK_AI_FIFO_MAX_WAIT_TIME``, ``BENCHMARK_AI_FIFO_WAIT_TIME_STEP``
    How long to wait for the pipe to appear, and between two looks, in seconds.

This module runs in other people's programs. So it needs only the standard library, nothing else
of Anubis, and keeps to the syntax of Python 3.8. It reads the environment when it is imported,
against the habit of this code base, because the original library did and old code may rely on it.
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import sys
import threading
import time
from collections.abc import Mapping

__all__ = ["FifoNotCreatedInTimeError", "emit"]


class FifoNotCreatedInTimeError(Exception):
    """The named pipe did not appear in time: nobody listens."""


class _StdoutEmitter:
    """Prints each line at once, so that it is not held back in a buffer until the end."""

    def write(self, line: str) -> None:
        sys.stdout.write(line)
        sys.stdout.flush()


class _FifoEmitter:
    """Writes to the pipe, which is opened at the first use and closed at exit."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._path = environment.get("BENCHMARK_AI_FIFO_FILEPATH", "/tmp/benchmark-ai/fifo")  # noqa: S108 - the documented default
        self._max_wait = float(environment.get("BENCHMARK_AI_FIFO_MAX_WAIT_TIME", "10"))
        self._step = float(environment.get("BENCHMARK_AI_FIFO_WAIT_TIME_STEP", "0.5"))
        self._descriptor = -1

    def write(self, line: str) -> None:
        if self._descriptor < 0:
            self._open()
        # Unbuffered, so a line is one write: up to PIPE_BUF bytes (4096 on Linux) it cannot mix
        # with the lines of other processes, and a fork cannot write it twice.
        data = memoryview(line.encode())
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BrokenPipeError:
                self._open_again()

    def _open(self) -> None:
        self._wait()
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        atexit.register(self._close)

    def _open_again(self) -> None:
        """Whoever listened was killed: wait for the next. The pipe stays open meanwhile, so that
        the next finds what is still in it. Raises BrokenPipeError if nobody comes in time.
        """
        deadline = time.monotonic() + self._max_wait
        while True:
            try:
                again = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
                break
            except OSError as error:
                if error.errno != errno.ENXIO:  # that there is no reader
                    raise
                if time.monotonic() > deadline:
                    raise BrokenPipeError(
                        errno.EPIPE, f"Nobody reads the named pipe {self._path} any more"
                    ) from None
            time.sleep(min(self._step, 0.1))
        os.set_blocking(again, True)
        os.close(self._descriptor)
        self._descriptor = again

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _wait(self) -> None:
        deadline = time.monotonic() + self._max_wait
        while not os.path.exists(self._path):  # noqa: PTH110 - pathlib costs users 10 ms to import
            left = deadline - time.monotonic()
            if left <= 0:
                raise FifoNotCreatedInTimeError(
                    f"The named pipe {self._path} was not created within {self._max_wait:g} s"
                )
            sys.stderr.write(f"emit: waiting for the named pipe {self._path}\n")
            time.sleep(min(self._step, left))


def _emitter(environment: Mapping[str, str]) -> _StdoutEmitter | _FifoEmitter:
    mode = environment.get("BENCHMARK_AI", "stdout").lower()
    if mode == "stdout":
        return _StdoutEmitter()
    if mode == "fifo":
        return _FifoEmitter(environment)
    raise ValueError(f"BENCHMARK_AI is {mode!r}; expected 'stdout' or 'fifo'")


_chosen = _emitter(os.environ)
_lock = threading.Lock()


def _renew_lock() -> None:
    """In the child of a fork: a thread that no longer exists may have held the lock."""
    global _lock  # noqa: PLW0603 - it must be the same name for emit()
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def emit(metrics: Mapping[str, float]) -> None:
    """Report the values of one or more metrics at this moment.

    Raises TypeError if ``metrics`` is not a mapping or holds what JSON cannot express,
    ValueError if it is empty, and FifoNotCreatedInTimeError if nobody listens in time.
    """
    if not isinstance(metrics, Mapping):
        raise TypeError(f"emit() takes a mapping of names to values, not {type(metrics).__name__}")
    if not metrics:
        raise ValueError("emit() needs at least one metric")
    line = json.dumps(dict(metrics), default=_plain) + "\n"
    with _lock:
        _chosen.write(line)


def _plain(value: object) -> object:
    """Numbers of NumPy, PyTorch and the like give their Python value by ``item()``."""
    item = getattr(value, "item", None)
    if callable(item):
        return item()
    raise TypeError(f"emit() cannot express {type(value).__name__} in JSON")
