"""Guard one container: start it, keep what it writes, enforce its limits, write how it ended.

The guard is to a container what a shim is to a program: alone with its unit, in a process of its
own that outlives the service. The container itself belongs to the daemon, so a guard may be killed
at any moment: the next one goes on where the journal ends, since the daemon still has all that was
written. Nothing here kills a process; the daemon is asked to.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
import time

from anubis.adapters.engine.process.guardian import (
    cgroups,
    channels,
    container_state,
    docker_api,
    ending,
    files,
    journal,
    linux,
)
from anubis.adapters.engine.process.guardian.container_state import Spec, State

SAMPLE_SECONDS = 1.0
FIRST_SAMPLE_SECONDS = 0.1
RETRY_SECONDS = 1.0
"""How often a daemon that does not answer is asked again."""

UNDER_WAY_SECONDS = 10.0
"""A guard that was killed may have asked for a start that the daemon still works on. To ask again
while that one ends could run a short program twice."""

LOG_BYTES = 1 << 20
DRAIN_SECONDS = 10.0
DRAIN_ATTEMPTS = 5
"""How often a log that breaks off is read again: a daemon may go away, or have a damaged one."""

KILL_AGAIN_SECONDS = 5.0
TURNS_PER_SECOND, BURST_TURNS, PAUSE_SECONDS = 100, 200, 0.001
"""After a burst of small pieces, output gathers for a moment, so that a program that writes line by
line does not wake us for each. A moment only, and none while much comes: the daemon sends each line
by itself, its socket takes some hundred of them, and a pause of 10 ms would let through 2 MB/s."""

SMALL_BYTES = 8192
NEVER = float("inf")
EMITTED = 2


class Guard:
    """One unit, from its specification to its status."""

    def __init__(self, directory: str, spec: Spec, book: journal.Journal) -> None:
        self._directory = directory
        self._live = files.live(directory)
        self._spec = spec
        self._journal = book
        self._daemon = docker_api.Daemon(spec.address, spec.version)
        self._ending = ending.Ending(spec.unit, ending.EXITED)
        self._emitted = channels.Channel(directory, EMITTED)
        self._emitted.resume()
        self._output = container_state.Output(directory)
        control = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
        self._control = os.open(f"{self._live}/{files.CONTROL}", control)
        self._room = spec.output_bytes - self._emitted.kept - sum(self._output.kept)
        self._is_noted = journal.find_started(directory) is not None
        self._state = State({})
        self._group: cgroups.Group | None = None
        self._process: int | None = None  #: a descriptor of the container's first process
        self._log: docker_api.Log | None = None
        self._wait: docker_api.Wait | None = None
        self._complaint = b""  #: what the container's init said about a program it cannot execute
        self._stopping = False
        self._kill_at = self._timeout_at = self._sample_at = self._reopen_at = NEVER
        self._turns, self._turn_at = float(BURST_TURNS), 0.0

    def run(self, *, is_first: bool) -> None:
        """Everything, in order."""
        if self._begin(is_first=is_first):
            while self._state.is_running:
                self._follow()
                self._state = self._inspect()
            self._take_in_the_rest()
            self._conclude()
        self._finish()

    def _begin(self, *, is_first: bool) -> bool:
        """Have the container started; False if there will be nothing to follow."""
        if not is_first:
            self._state = self._inspect()
            self._await_start_under_way()
            if not self._state.is_created:
                return self._exists()
        return self._start()

    def _is_called_off(self) -> bool:
        stop = container_state.read_stop(self._live)
        if stop:
            self._ending.message = "it was stopped before the program was started"
            self._ending.cause = stop[1]
        return stop is not None

    def _exists(self) -> bool:
        if self._state.is_known:
            return True
        self._ending.cause = ending.LOST
        self._ending.message = "the container is gone: somebody removed it"
        return False

    def _start(self) -> bool:
        """Ask until it was started: a daemon that went away may never have heard of it."""
        while not self._is_called_off():
            try:
                self._daemon.ask("POST", self._path("/start"), docker_api.START_SECONDS)
            except docker_api.Refused as error:
                self._ending.cause = ending.NOT_STARTED
                self._ending.message = container_state.explained(str(error))
                return False
            except OSError:  # away, or very slow: its word counts, not our haste
                pass
            self._state = self._inspect()
            self._await_start_under_way()
            if not self._state.is_created:
                return self._exists()
        return False

    def _await_start_under_way(self) -> None:
        give_up = time.monotonic() + UNDER_WAY_SECONDS
        while self._state.is_created and time.monotonic() < give_up:
            time.sleep(RETRY_SECONDS / 10)
            self._state = self._inspect()

    def _inspect(self) -> State:
        """How the container is; asks until the daemon answers."""
        while True:
            try:
                return State(self._daemon.ask("GET", self._path("/json")))
            except docker_api.Refused as error:
                if error.status == 404:
                    return State({})
            except (OSError, ValueError):  # away, or restarting
                pass
            self._wait_quietly(RETRY_SECONDS)

    def _wait_quietly(self, seconds: float) -> None:
        """While the daemon is away: what the program emits is kept all the same."""
        poll = select.poll()
        poll.register(self._emitted.fifo, select.POLLIN)
        if poll.poll(seconds * 1000) and self._state.is_running:
            self._keep_emitted()
            time.sleep(PAUSE_SECONDS)

    def _follow(self) -> None:
        """Until the container has ended, or the daemon lost us."""
        self._attach()
        poll, quiet = select.poll(), select.poll()
        for one in (poll, quiet):
            one.register(self._control, select.POLLIN)
            if self._wait is not None:
                one.register(self._wait.connection, select.POLLIN)
            if self._process is not None:
                one.register(self._process, select.POLLIN)
        poll.register(self._emitted.fifo, select.POLLIN)
        if self._log is not None:
            poll.register(self._log.connection, select.POLLIN)
            self._keep_all(self._log.early())
        try:
            while self._turn(poll, quiet):
                pass
        finally:
            self._detach()

    def _attach(self) -> None:
        """Open what tells us of the container; whatever is missing is tried again."""
        now = time.monotonic()
        ran = max(0.0, time.time() - self._state.started_ns / 1e9)
        if not self._stopping:
            self._timeout_at = now + self._spec.running_seconds - ran
        self._sample_at = now + FIRST_SAMPLE_SECONDS
        self._reopen_at = NEVER
        if self._group is None:
            self._group = cgroups.find(
                self._state.process, self._spec.container, int(self._spec.has_init)
            )
        if self._group is not None:  # else its number may be somebody else's
            with contextlib.suppress(OSError):
                self._process = os.pidfd_open(self._state.process)
        try:
            self._wait = self._daemon.wait(self._path("/wait"))
            self._close_log()
            self._log = self._open_log("follow=1&")
        except (OSError, docker_api.Refused):
            self._reopen_at = now + RETRY_SECONDS

    def _open_log(self, how: str = "") -> docker_api.Log:
        path = self._path(f"/logs?{how}stdout=1&stderr=1")
        return docker_api.Log(self._daemon.open("GET", path), self._output.kept)

    def _detach(self) -> None:
        if self._wait is None or not self._wait.was_told:
            self._close_log()  # the daemon went away: that its log ends means nothing
        if self._wait is not None:
            self._wait.connection.close()
            self._wait = None
        if self._process is not None:
            os.close(self._process)
            self._process = None

    def _turn(self, poll: select.poll, quiet: select.poll) -> bool:
        """Wait for news and take them in; False when it is time to ask how the container is."""
        now = time.monotonic()
        self._enforce(now)
        if now >= self._reopen_at:
            return False
        ready = self._wait_for_news(poll, quiet, now)
        if self._process in ready:
            # Now, for the daemon deletes the group within some milliseconds.
            self._sample()
            for one in (poll, quiet):
                one.unregister(self._process)  # type: ignore[arg-type] # it is in ready
            os.close(self._process)  # type: ignore[arg-type]
            self._process = None
        if self._control in ready:
            os.read(self._control, 4096)
        if self._emitted.fifo in ready:
            self._keep_emitted()
        if self._log is not None and self._log.connection.fileno() in ready:
            self._read_log(poll, now)
        is_told = self._wait is not None and self._wait.connection.fileno() in ready
        return not (is_told and self._wait is not None and self._wait.is_over())

    def _wait_for_news(self, poll: select.poll, quiet: select.poll, now: float) -> set[int | None]:
        until = min(self._sample_at, self._kill_at, self._timeout_at, self._reopen_at)
        self._turns = min(self._turns + (now - self._turn_at) * TURNS_PER_SECOND, BURST_TURNS)
        self._turn_at = now
        patience = max(0.0, until - now)
        if self._turns < 1:
            ready = quiet.poll(min(PAUSE_SECONDS, patience) * 1000)
            self._turns = 1.0
        else:
            ready = poll.poll(patience * 1000)
        return {descriptor for descriptor, _ in ready}

    def _read_log(self, poll: select.poll, now: float) -> None:
        assert self._log is not None
        descriptor = self._log.connection.fileno()
        found = self._log.read(LOG_BYTES)
        if found is None:
            poll.unregister(descriptor)
            self._close_log()
            # The container ends, or the daemon does. Without news of an end we ask.
            self._reopen_at = now + RETRY_SECONDS
            return
        self._keep_all(found)
        self._count_turn(found)

    def _count_turn(self, found: list[tuple[int, bytes]]) -> None:
        if sum(len(content) for _, content in found) < SMALL_BYTES:
            self._turns -= 1

    def _close_log(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def _enforce(self, now: float) -> None:
        """Act on what is asked for and on the deadlines that passed."""
        if stop := container_state.read_stop(self._live):
            self._stop(*stop)
        if now >= self._timeout_at:
            self._stop(self._spec.grace, ending.TIMED_OUT)
        if now >= self._kill_at:
            self._send("KILL")
            self._kill_at = now + KILL_AGAIN_SECONDS
        if now >= self._sample_at:
            self._sample_at = now + SAMPLE_SECONDS
            self._sample()

    def _stop(self, grace: float, cause: str) -> None:
        """Ask the program to end. A second request can only shorten the patience."""
        self._timeout_at = NEVER
        if not self._stopping:
            self._stopping = True
            self._ending.cause = cause
            container_state.note_stop(self._live, grace, cause)
            self._kill_at = time.monotonic() + grace
            if grace > 0:
                self._send("TERM")
        self._kill_at = min(self._kill_at, time.monotonic() + grace)

    def _send(self, signal: str) -> None:
        """Through the daemon. It says no when the container has ended: then all is well."""
        with contextlib.suppress(OSError, docker_api.Refused):
            self._daemon.ask("POST", self._path(f"/kill?signal={signal}"))

    def _sample(self) -> None:
        """Note what is used. A group without processes is over and tells only its totals."""
        if self._group is None:
            self._note_started()
            return
        known = self._group.last
        reading = self._group.read()
        if reading is None:
            return
        if not reading[5]:
            if known is None or not known[5]:
                return
            reading = (reading[0], known[1], *reading[2:4], *known[4:])
        self._note_started()
        self._journal.reading(reading)

    def _note_started(self) -> None:
        """Once, before anything else is told of the program."""
        if not self._is_noted:
            self._is_noted = True
            # Not the number of its process: nobody who finds it here shall kill that.
            self._journal.started(-1, 0, at=self._state.started_ns)

    def _keep_all(self, found: list[tuple[int, bytes]]) -> None:
        for stream, content in found:
            self._keep(stream, content)

    def _keep(self, stream: int, content: bytes) -> None:
        if self._may_be_complaint(stream, content):
            self._complaint += content
            return
        self._note_started()
        kept = content[: max(0, self._room)]
        if kept:
            self._output.keep(stream, kept)
            self._journal.mark(stream, self._output.kept[stream])
            self._room -= len(kept)
        if len(kept) < len(content):
            self._exceed()

    def _may_be_complaint(self, stream: int, content: bytes) -> bool:
        """Whether these are the first words on stderr, and such as only an init says."""
        if stream != 1 or self._is_noted or not self._spec.has_init:
            return False
        return container_state.is_complaint(self._complaint + content)

    def _keep_emitted(self) -> None:
        if self._room <= 0:
            self._emitted.drop()
            self._exceed()
            return
        self._note_started()
        moved = self._emitted.keep(min(channels.PIPE_BYTES, self._room))
        self._room -= moved
        self._turns -= 1
        if moved:
            self._journal.mark(EMITTED, self._emitted.kept)

    def _exceed(self) -> None:
        """It wrote more than it may: stop it, and throw away what comes."""
        self._stop(self._spec.grace, ending.OUTPUT_LIMIT)
        if self._ending.cause == ending.EXITED:  # too late to stop it, but its output is cut
            self._ending.cause = ending.OUTPUT_LIMIT

    def _take_in_the_rest(self) -> None:
        """The container has ended: what the daemon has now is all there will ever be."""
        is_whole = self._log is not None and self._drain() and not self._log.may_be_short
        for _ in range(0 if is_whole else DRAIN_ATTEMPTS):
            self._close_log()
            try:
                self._log = self._open_log()
                self._keep_all(self._log.early())
                if self._drain() and not self._log.is_cut:
                    break
            except docker_api.Refused:  # it was removed
                break
            except OSError:
                pass
            self._inspect()  # until the daemon is back
        self._close_log()
        give_up = time.monotonic() + DRAIN_SECONDS
        while self._emitted.has_data() and time.monotonic() < give_up:
            self._keep_emitted()

    def _drain(self) -> bool:
        """Read the log to where it ends; False if nothing comes, or the daemon went away."""
        assert self._log is not None
        poll = select.poll()
        poll.register(self._log.connection, select.POLLIN)
        while poll.poll(DRAIN_SECONDS * 1000):
            found = self._log.read(LOG_BYTES)
            if found is None:
                return self._answers()
            self._keep_all(found)
        return False

    def _answers(self) -> bool:
        """Whether the daemon is there: a log that ends because it is not may be longer."""
        try:
            self._daemon.ask("GET", self._path("/json"))
        except (OSError, ValueError):
            return False
        except docker_api.Refused:
            pass
        return True

    def _conclude(self) -> None:
        """Put into words how it ended."""
        if not self._exists():
            return
        code = self._state.exit_code
        if self._complaint and code in container_state.NOT_EXECUTED:
            self._ending.cause = ending.NOT_STARTED
            self._ending.message = container_state.explained(self._complaint.decode())
            return
        self._note_started()
        if complaint := self._complaint:
            self._complaint = b""
            self._keep(1, complaint)
        self._ending.exit_code, self._ending.signal = container_state.exit_of(code)
        stop = container_state.read_stop(self._live)
        if stop and not self._stopping and self._ending.signal in container_state.STOPPED_BY:
            self._ending.cause = stop[1]  # a guard before us stopped it, and was killed then
        if self._state.is_out_of_memory and code and self._ending.cause == ending.EXITED:
            self._ending.cause = ending.OUT_OF_MEMORY
        if self._group is not None and self._group.last is not None:
            self._ending.cpu_seconds = self._group.last[0] / 1e9
            self._ending.peak_memory_bytes = self._group.peak

    def _finish(self) -> None:
        self._emitted.sync()
        self._output.sync()
        self._journal.close()
        self._ending.write(self._directory)

    def give_up(self, why: str) -> None:
        """Leave nothing running that nobody can follow. Raises OSError if not even that is taken:
        then whoever comes next tries again.
        """
        self._send("KILL")
        ending.Ending(self._spec.unit, ending.LOST, why).write(self._directory)

    def _path(self, what: str) -> str:
        return f"/containers/{self._spec.container}{what}"


def main(directory: str) -> None:
    """Be the guard of this container, unless there is one already."""
    os.setsid()
    linux.name_process("anubis-guard")
    if files.take_lock(directory) is None or files.has_ended(directory):
        return
    try:
        book, is_first = journal.Journal.create(directory), True
    except FileExistsError:
        book, is_first = journal.Journal.reopen(directory), False
    guard = Guard(directory, Spec.read(directory), book)
    try:
        guard.run(is_first=is_first)
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            guard.give_up("the disk is full")
        raise
