"""The recorder's life: follow the program from its start to its end, then wait to be read.

One loop that looks ten times a second, and more often while there is something to see. It must go
on whatever happens around it: on a full disk it waits for room, and takes nothing it cannot keep.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import os
import select
import signal
import time
from typing import Final

from anubis.adapters.engine.kubernetes.recorder import resuming, stopping
from anubis.adapters.engine.kubernetes.recorder.cri_log import Log, Piece
from anubis.adapters.engine.kubernetes.recorder.emitting import Emitted
from anubis.adapters.engine.kubernetes.recorder.first_process import FirstProcess, first
from anubis.adapters.engine.kubernetes.recorder.processes import Process, Program
from anubis.adapters.engine.kubernetes.recorder.reading import Usage
from anubis.adapters.engine.kubernetes.recorder.specifying import Spec
from anubis.adapters.engine.kubernetes.recorder.stopping import NEVER, Request, Stopping
from anubis.adapters.engine.kubernetes.recording import (
    Journal,
    Kind,
    Totals,
    packed,
    packed_json,
    packed_output,
)

QUIET_SECONDS, BUSY_SECONDS, FULL_SECONDS = 0.1, 0.02, 1.0
"""Between two looks: when nothing came; when something did, or the program is about to begin; when
the disk is full."""

EMIT_PAUSE_SECONDS: Final = 0.005
"""After small pieces what is emitted gathers for a moment, so that a program that emits line by
line does not wake us for each. The pipe takes a megabyte meanwhile."""

SAMPLE_SECONDS, FIRST_SAMPLE_SECONDS = 1.0, 0.1
TOUCH_SECONDS: Final = 60.0
SEAL_SECONDS: Final = 60.0
"""How long after the kubelet's word that the program has ended it may still have processes."""

SETTLE_SECONDS: Final = 0.1
SMALL_BYTES: Final = 8192
FRAME_BYTES: Final = 512 * 1024
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class Recorder:
    """One unit."""

    def __init__(
        self, spec: Spec, program: Program | None = None, usage: Usage | None = None
    ) -> None:
        path = f"{spec.places.record}/journal"
        self._spec = spec
        self._folder = spec.places.record
        self._past = resuming.recovered(path)
        self._journal = Journal(path)
        self._emitted = Emitted(spec.places.emit)
        self._log = Log(spec.places.logs, self._past.place)
        self._program = program or Program()
        self._usage = usage or Usage()
        if self._past.reading is not None:
            self._usage.resume(self._past.reading, 0)
        self._first: FirstProcess | None = None
        self._absent_ns = 0  #: when there was no program, by the last look before there was one
        self._kept = self._past.kept
        self._stopping = Stopping()
        self._told: collections.deque[bytes] = collections.deque()  #: frames of other threads
        self._wake, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(self._emitted.fifo, select.POLLIN)
        self._has_begun = self._has_ended = self._is_cut = False
        self._is_begin_told = self._past.has_begun
        self._is_over = False  #: the kubelet says so
        self._over_at = self._timeout_at = self._sample_at = NEVER
        self._touch_at = 0.0
        self._pause: float = QUIET_SECONDS

    def run(self) -> None:
        """Everything, in order."""
        signal.signal(signal.SIGTERM, self._end)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        # Held back since we were started: a program may end before we are there to hear of it.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        if not self._past.is_sealed:
            while not self._turn():
                pass
        if self._has_something():
            self._wait_to_be_read()

    def _has_something(self) -> bool:
        """Whether there was a program. A pod that is deleted before it began has nothing to read,
        and nobody may know any more that it was there.
        """
        return self._has_begun or self._past.exists or os.path.exists(self._spec.places.logs)  # noqa: PTH110

    def _end(self, _number: int, _frame: object) -> None:
        self._is_over = True

    def _turn(self) -> bool:
        """One look at everything; whether all is recorded and sealed."""
        self._wait()
        now = time.monotonic()
        try:
            self._journal.settle()
            self._watch(now)
            came = self._keep_told() + self._keep_emitted() + self._keep_output()
            if self._is_over and not came:
                return self._seal(now)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            self._pause = FULL_SECONDS
            return False
        self._pause = BUSY_SECONDS if came or self._is_beginning() else QUIET_SECONDS
        if self._log.is_behind:
            self._pause = 0
        return False

    def _is_beginning(self) -> bool:
        """Whether the program is about to begin. The kubelet makes a folder for its log when its
        image is there.
        """
        is_there = self._has_begun or os.path.exists(self._spec.places.logs)  # noqa: PTH110
        return is_there and not self._is_begin_told

    def _wait(self) -> None:
        ready = {descriptor for descriptor, _ in self._poll.poll(self._pause * 1000)}
        if self._first is not None and self._first.handle in ready:
            self._first.note_end()
            self._poll.unregister(self._first.handle)
        if self._wake in ready:
            os.read(self._wake, 4096)
        if self._emitted.fifo in ready:
            if self._pause == FULL_SECONDS:
                time.sleep(FULL_SECONDS)
            elif self._emitted.waiting() < SMALL_BYTES:
                time.sleep(EMIT_PAUSE_SECONDS)

    def _touch_pins(self, now: float) -> None:
        """Say that the run needs its data; see ``bootstrap.podding``."""
        if self._spec.pins and now >= self._touch_at:
            self._touch_at = now + TOUCH_SECONDS
            with contextlib.suppress(OSError):
                os.utime(self._spec.pins)

    def _watch(self, now: float) -> None:
        """See what the program is at, and act on what is due."""
        self._touch_pins(now)
        if request := stopping.asked(self._folder):
            self._stop(request, now)
        if now >= self._timeout_at:  # until that could be written down; the disk may be full
            self._ask_to_stop("timed_out", now)
        if self._first is not None:
            self._look_at_first(self._first)
        must_look = not self._has_begun or now >= self._sample_at or self._stopping.is_due(now)
        if not must_look:
            return
        looked_ns = time.time_ns()  # before: it may begin behind our back
        processes = self._program.processes()
        if processes:
            self._begin(processes, now)
            self._stopping.signal(processes, now)
        elif not self._has_begun:
            self._absent_ns = looked_ns
        if now >= self._sample_at and any(one.is_running for one in processes):
            self._sample_at = now + SAMPLE_SECONDS
            self._journal.append(packed_json(Kind.READING, self._usage.sample(processes)))

    def _begin(self, processes: list[Process], now: float) -> None:
        if self._has_begun:
            return
        self._has_begun = True
        one, seen_ns = first(processes), time.time_ns()
        self._first = FirstProcess(one)
        if self._first.is_runtime:
            self._absent_ns = seen_ns
        if self._first.handle >= 0:
            self._poll.register(self._first.handle, select.POLLIN)
        self._timeout_at = now + self._spec.running_seconds - one.age
        self._sample_at = now + FIRST_SAMPLE_SECONDS
        if self._spec.readiness or self._spec.liveness:
            # Large, and of no use to those that have no probes.
            from anubis.adapters.engine.kubernetes.recorder import answering

            answering.begin(self._spec, self._tell)
        self._tell_begin(self._first)

    def _tell_begin(self, one: FirstProcess) -> None:
        """Write down when it became the program, if it has: after the last look at which it had
        not. Of one that has ended already, only the cluster knows whether it ever did.
        """
        if self._is_begin_told or (one.is_runtime and one.ended_ns is None):
            return
        self._is_begin_told = True
        began_ns = max(time.time_ns() - round(one.last.age * 1e9), self._absent_ns)
        self._journal.append(packed_json(Kind.BEGAN, {}, began_ns))

    def _look_at_first(self, one: FirstProcess) -> None:
        """Know what it has used up to its end, and write down when that was."""
        if one.ended_ns is None:
            looked_ns = time.time_ns()
            one.look()
            if one.is_runtime:
                self._absent_ns = looked_ns
        self._tell_begin(one)
        if one.ended_ns is not None and not self._has_ended:
            used = self._usage.sample(one.with_others(self._program.processes()))
            self._has_ended = True
            told = {"cpu_seconds": used.cpu_seconds}
            self._journal.append(packed_json(Kind.ENDED, told, one.ended_ns))

    def _tell(self, frame: bytes) -> None:
        self._told.append(frame)
        os.write(self._waker, b"\0")

    def _ask_to_stop(self, cause: str, now: float) -> None:
        """By ourselves; written down for whoever comes after us."""
        self._stop(stopping.ask(self._folder, self._spec.grace_seconds, cause), now)

    def _stop(self, request: Request, now: float) -> None:
        if self._stopping.begin(request, now):
            self._timeout_at = NEVER
            if not self._past.is_stopped:
                self._journal.append(packed_json(Kind.STOPPED, {"cause": request.cause}))

    def _keep_told(self) -> int:
        count = 0
        while self._told:
            self._journal.append(self._told.popleft())
            count += 1
        return count

    def _keep_emitted(self) -> int:
        room = self._room()
        if room <= 0:
            dropped = self._emitted.drop()
            if dropped:
                self._exceed()
            return dropped
        kept = self._emitted.keep(self._journal, room)
        self._kept[Kind.EMITTED] += kept
        return kept

    def _keep_output(self) -> int:
        frames: list[bytes] = []
        for piece in self._log.read(is_over=self._is_over):
            frames += self._framed(piece)
        if frames:
            self._journal.append(b"".join(frames))
        return len(frames)

    def _framed(self, piece: Piece) -> list[bytes]:
        if piece.kind is Kind.FILE:
            return [packed(piece.kind, piece.data, piece.at_ns)]
        data = piece.data[: max(0, self._room())]
        if len(data) < len(piece.data):
            self._exceed()
        self._kept[piece.kind] += len(data)
        # Also without any bytes: whoever comes after us shall not read them again. More than one
        # only if the runtime does not cut long lines, as all do by themselves.
        parts = [data[at : at + FRAME_BYTES] for at in range(0, len(data), FRAME_BYTES)] or [b""]
        return [packed_output(piece.kind, piece.position, part, piece.at_ns) for part in parts]

    def _room(self) -> int:
        return self._spec.output_bytes - sum(self._kept.values())

    def _exceed(self) -> None:
        """It wrote more than it may: stop it, and throw away what comes."""
        self._is_cut = True
        if self._stopping.request is None:
            self._ask_to_stop("output_limit", time.monotonic())

    def _seal(self, now: float) -> bool:
        """The program has ended, and nothing new came. True when that is certain, and noted."""
        if self._over_at == NEVER:
            self._over_at = now
            self._pause = SETTLE_SECONDS
            return False
        late = now >= self._over_at + SEAL_SECONDS
        if self._program.processes() and not late:
            self._pause = QUIET_SECONDS
            return False
        if now < self._over_at + SETTLE_SECONDS:
            return False
        self._note_what_is_missing(late=late)
        totals = Totals(
            stdout_bytes=self._kept[Kind.STDOUT],
            stderr_bytes=self._kept[Kind.STDERR],
            emitted_bytes=self._kept[Kind.EMITTED],
            cpu_seconds=self._usage.last.cpu_seconds,
            peak_memory_bytes=self._usage.peak,
            is_whole=self._log.is_whole and not (self._is_cut or self._log.unreadable or late),
        )
        self._journal.append(packed_json(Kind.SEALED, totals))
        return True

    def _note_what_is_missing(self, *, late: bool) -> None:
        notes = []
        if not self._log.is_whole:
            notes.append("some output is missing: its files were deleted while nobody read them")
        if self._log.unreadable:
            notes.append(f"{self._log.unreadable} lines of the log could not be read")
        if late:
            notes.append("processes of the program were still there when the pod ended")
        for note in notes:
            self._journal.append(packed_json(Kind.NOTE, {"message": note}))

    def _wait_to_be_read(self) -> None:
        give_up = time.monotonic() + self._spec.drain_seconds
        while not stopping.is_released(self._folder) and time.monotonic() < give_up:
            time.sleep(QUIET_SECONDS * 5)
