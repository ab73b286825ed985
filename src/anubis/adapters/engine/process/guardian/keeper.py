"""Hold the pipes of all runs beside the zygote, and guard the runs when the zygote is killed.

What a program wrote is safe while anybody has its pipe open. Shim, zygote and engine do, but all
three may be killed within one moment; the keeper is the fourth, and does nothing else. When it
sees the zygote die, it waits for the shims it knows of and finishes the runs of those that are
killed too. A keeper that dies is replaced by its zygote.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

from anubis.adapters.engine.process.guardian import files, linux, recovery, revival

LINE = 3  #: the descriptor on which the zygote speaks: ``hold <run>``, ``drop <run>``, ``bye``
LOOK_SECONDS = 0.05
APPEAR_SECONDS = 5.0
"""How long a shim may take to begin; without a zygote nobody would tell us that it never will."""


class Keeper:
    """All pipes of one zygote's runs."""

    def __init__(self, root: str, revive: list[str] | None) -> None:
        self._root = root
        self._revive = revive
        self._held: dict[str, list[int]] = {}
        self._has_recovered = False

    def serve(self) -> None:
        """Do what the zygote says; when it is gone, stay until all its runs have ended."""
        rest = b""
        while data := os.read(LINE, 65536):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._obey(*line.decode().split(" "))
        began = time.monotonic()
        while self._held:
            for run_id in list(self._held):
                if self._is_over(run_id, time.monotonic() - began):
                    self._drop(run_id)
            time.sleep(LOOK_SECONDS)
        if self._has_recovered and self._revive:
            revival.start_detached(self._revive)

    def _obey(self, word: str, run_id: str = "") -> None:
        if word == "hold":
            with contextlib.suppress(OSError):  # the run was removed already
                self._held[run_id] = recovery.hold(f"{self._root}/{run_id}")
        elif word == "drop":
            self._drop(run_id)
        elif word == "bye":
            self._revive = None

    def _drop(self, run_id: str) -> None:
        for descriptor in self._held.pop(run_id, ()):
            os.close(descriptor)

    def _is_over(self, run_id: str, seconds: float) -> bool:
        """Whether a run needs no pipes any more; finishes it if its shim is dead."""
        directory = f"{self._root}/{run_id}"
        if files.has_ended(directory):
            return True
        if not files.was_started(directory):  # do not touch a lock its shim may be about to take
            return seconds > APPEAR_SECONDS
        try:
            is_over = recovery.recover(directory, "the shim was killed after its zygote")
        except (OSError, ValueError) as error:  # a full disk: the engine will see it too
            sys.stderr.write(f"{run_id}: {error}\n")
            return True
        self._has_recovered |= is_over
        return is_over


def start(root: str, revive: list[str] | None) -> tuple[int, int]:
    """Fork a keeper: its process id, and the descriptor to speak to it."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            signal.set_wakeup_fd(-1)
            os.setsid()
            os.dup2(reader, LINE)
            os.closerange(LINE + 1, 1 << 16)
            linux.name_process("anubis-keeper")
            Keeper(root, revive).serve()
        finally:
            os._exit(0)
    os.close(reader)
    os.set_blocking(writer, False)
    return process, writer
