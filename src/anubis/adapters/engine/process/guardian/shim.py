"""Guard one run: start its program, keep its output, enforce its limits, write how it ended.

A shim is alone with its run: it holds the run's lock, is the parent of everything the program
leaves behind, and needs nobody. Its loop sleeps until output, a child's death, a request or a
deadline wakes it.
"""
# pathlib would cost a zygote 5 ms at its start, and each call ten times its time.
# ruff: noqa: PTH103

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import sys
import time
import types

from anubis.adapters.engine.process.guardian import channels, ending, files, linux, program, tree
from anubis.adapters.engine.process.guardian.journal import Journal

SAMPLE_SECONDS = 1.0
FIRST_SAMPLE_SECONDS = 0.1
"""A program that has just begun is still being loaded: what it uses then says nothing about it."""

SETTLE_SECONDS = 0.2
"""How long children may outlive the program before we call them left behind. A shell's
``>(tee log)`` needs a moment to see the end of its input; stopping it there would lose output."""

LEFT_BEHIND_SECONDS = 2.0
"""Most that left-behind processes get between SIGTERM and SIGKILL: nobody waits for them."""

KILL_PAUSE_SECONDS = 0.02
KILL_GIVE_UP_SECONDS = 30.0
"""A process that outlives SIGKILL so long hangs in the kernel; we say so instead of waiting."""

DRAIN_SECONDS = 10.0
"""A pipe holds a megabyte. What still flows after this comes from a process we may not kill."""

TURNS_PER_SECOND = 100
BURST_TURNS = 200
PAUSE_SECONDS = 0.01
"""A program that writes line by line would wake us for each. After a burst we let its output
gather in the pipe: order and time of slow output stay exact, fast output costs the program
nothing."""

NEVER = float("inf")
PROCESSES = 5  #: where a reading counts them


class Shim:
    """The run of one unit, from its specification to its status."""

    def __init__(self, directory: str, spec: program.Spec, journal: Journal) -> None:
        self._directory = directory
        self._spec = spec
        self._journal = journal
        self._usage = tree.Usage()
        self._ending = ending.Ending(spec.unit, ending.EXITED)
        self._channels = [channels.Channel(directory, n) for n in range(len(files.STREAMS))]
        control = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
        self._live = files.live(directory)
        self._control = os.open(f"{self._live}/{files.CONTROL}", control)
        self._wake = wake_on_children()
        self._all, self._quiet = select.poll(), select.poll()
        self._room = spec.output_bytes
        self._main = 0  #: process id of the program; 0 when it has ended
        self._stopping = False
        self._kill_at = NEVER  #: when patience ends
        self._term_at = NEVER  #: when left-behind processes are asked to end
        self._sample_at = 0.0
        self._timeout_at = NEVER
        self._turns = float(BURST_TURNS)
        self._turn_at = 0.0

    def run(self) -> None:
        """Everything, in order."""
        for descriptor in (self._control, self._wake):
            self._all.register(descriptor, select.POLLIN)
            self._quiet.register(descriptor, select.POLLIN)
        for channel in self._channels:
            self._all.register(channel.fifo, select.POLLIN)
        for channel in self._channels[:2]:
            channel.widen()
        if stop := self._read_stop():
            self._ending.message = "it was stopped before the program was started"
            self._ending.cause = stop[1]
        else:
            self._execute()
        self._finish()

    def _execute(self) -> None:
        if self._spec.directory == f"{self._directory}/{files.WORK}":
            os.makedirs(self._spec.directory, exist_ok=True)
        if self._spec.protected and os.geteuid() == 0:  # modes of files keep out all others
            with contextlib.suppress(OSError):  # in a container without the right to mount
                linux.protect(self._spec.protected)
        try:
            self._main = program.spawn(self._spec, self._directory)
        except program.NotStarted as error:
            self._ending.cause, self._ending.message = ending.NOT_STARTED, str(error)
            return
        self._journal.started(self._main, tree.start_ticks(self._main))
        now = time.monotonic()
        self._timeout_at = now + self._spec.running_seconds
        self._sample_at = now + FIRST_SAMPLE_SECONDS
        self._follow()
        peak = tree.reaped_peak_bytes()
        # The kernel counts the shim's own size as the program's, from before its exec: a peak not
        # above that says nothing, and then only what was sampled is known.
        is_its_own = peak > tree.own_peak_bytes()
        self._ending.peak_memory_bytes = peak if is_its_own else self._usage.largest
        self._ending.cpu_seconds = tree.reaped_cpu_seconds()
        if self._usage.last[PROCESSES] or any(self._usage.ended_io):
            self._journal.reading(self._usage.close())

    def _follow(self) -> None:
        """Until nothing of the program's tree is left."""
        while self._reap():
            now = time.monotonic()
            if not self._enforce(now):
                return
            if now >= self._sample_at:
                self._sample(now)
            self._sleep(now)

    def _sample(self, now: float) -> None:
        self._sample_at = now + SAMPLE_SECONDS
        if stop := self._read_stop():  # for a request whose wake-up got lost
            self._stop(*stop)
        reading = self._usage.sample(os.getpid())
        if reading[PROCESSES]:
            self._journal.reading(reading)

    def _sleep(self, now: float) -> None:
        until = min(self._sample_at, self._kill_at, self._term_at, self._timeout_at)
        self._turns = min(self._turns + (now - self._turn_at) * TURNS_PER_SECOND, BURST_TURNS)
        self._turn_at = now
        if self._turns < 1:
            self._wait(self._quiet, min(PAUSE_SECONDS, max(0.0, until - now)))
            self._turns = max(self._turns, 1.0)
            return
        ready = self._wait(self._all, max(0.0, until - now))
        for channel in self._channels:
            if channel.fifo in ready:
                self._keep(channel)

    def _wait(self, poll: select.poll, seconds: float) -> set[int]:
        ready = {descriptor for descriptor, _ in poll.poll(seconds * 1000)}
        if self._wake in ready:
            os.read(self._wake, 4096)
        if self._control in ready:
            os.read(self._control, 4096)
            if stop := self._read_stop():
                self._stop(*stop)
        return ready

    def _keep(self, channel: channels.Channel) -> None:
        """Move one turn of output; beyond the limit, stop the run and throw the rest away."""
        if self._room <= 0:
            channel.drop()
            self._stop(self._spec.grace, ending.OUTPUT_LIMIT)
            if self._ending.cause == ending.EXITED:  # too late to stop it, but its output is cut
                self._ending.cause = ending.OUTPUT_LIMIT
            return
        moved = channel.keep(min(channels.PIPE_BYTES, self._room))
        self._room -= moved
        if moved:
            self._journal.mark(channel.number, channel.kept)
        if moved < channels.PIPE_BYTES // 4:
            self._turns -= 1

    def _reap(self) -> bool:
        """Bury the dead; whether anybody is left."""
        try:
            while ended := self._usage.reap():
                process, status = ended
                if process == self._main:
                    self._main = 0
                    self._ending.exited_with(status)
                    if not self._stopping:
                        self._term_at = time.monotonic() + SETTLE_SECONDS
        except ChildProcessError:
            return False
        return True

    def _read_stop(self) -> tuple[float, str] | None:
        """Grace and cause of the request, if there is one; its writer replaces it whole."""
        content = files.read_json(self._live, files.STOP)
        return (float(str(content["grace"])), str(content["cause"])) if content else None

    def _stop(self, grace: float, cause: str) -> None:
        """Ask the whole tree to end. A second request can only shorten the patience."""
        self._kill_at = min(self._kill_at, time.monotonic() + grace)
        self._timeout_at = NEVER
        if self._main and not self._stopping:
            self._stopping = True
            self._ending.cause = cause
            tree.ask_to_end(tree.running_below(os.getpid()))

    def _enforce(self, now: float) -> bool:
        """Act on the deadlines that passed; False when even SIGKILL does not help."""
        if now >= self._timeout_at:
            self._stop(self._spec.grace, ending.TIMED_OUT)
        if now >= self._term_at:
            self._dismiss_left_behind(now)
        if now < self._kill_at:
            return True
        return self._kill(now)

    def _dismiss_left_behind(self, now: float) -> None:
        self._term_at = NEVER
        left = tree.running_below(os.getpid())
        self._ending.left_behind = len(left)
        tree.ask_to_end(left)
        self._kill_at = min(self._kill_at, now + min(self._spec.grace, LEFT_BEHIND_SECONDS))

    def _kill(self, now: float) -> bool:
        """SIGKILL for all, again and again: a dying tree may still be forking."""
        give_up = now + KILL_GIVE_UP_SECONDS
        while self._reap():
            if time.monotonic() > give_up:
                left = len(tree.running_below(os.getpid()))
                self._ending.message = f"{left} processes did not end even when killed"
                return False
            tree.send(signal.SIGKILL, list(tree.descendants(os.getpid())))
            for channel in self._channels:  # a full pipe must not slow its writers' end
                if channel.has_data():
                    self._keep(channel)
            self._wait(self._quiet, KILL_PAUSE_SECONDS)
        return True

    def _finish(self) -> None:
        """All are dead: what is still in the pipes is all there will ever be."""
        give_up = time.monotonic() + DRAIN_SECONDS
        for channel in self._channels:
            while channel.has_data() and time.monotonic() < give_up:
                self._keep(channel)
            channel.sync()
        self._journal.close()
        self._ending.write(self._directory)


def wake_on_children() -> int:
    """A descriptor that becomes readable whenever a child ends."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, _ignore)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def _ignore(_number: int, _frame: object) -> None:
    """Only the wake-up descriptor matters, but Python writes to it only if there is a handler."""


def container_guard() -> types.ModuleType:
    """What guards containers. Loaded where there is one: the shims of programs need none of it."""
    from anubis.adapters.engine.process.guardian import container

    return container


def main(directory: str) -> None:
    """Be the shim of this run, unless there is or was one already."""
    if files.is_container(directory):
        container_guard().main(directory)
        return
    os.setsid()
    linux.adopt_orphans(True)
    linux.name_process("anubis-shim")
    if files.take_lock(directory) is None:  # held until this process ends
        return
    try:
        journal = Journal.create(directory)
    except FileExistsError:
        return
    try:
        Shim(directory, program.Spec.read(directory), journal).run()
    except Exception as error:  # whoever finds this run without a status shall know why
        sys.excepthook(type(error), error, error.__traceback__)
        is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        message = "the disk is full" if is_full else f"{type(error).__name__}: {error}"
        content = json.dumps({"message": message}).encode()
        files.write_durably(files.live(directory), files.DEFECT, content, sync=False)
        raise
