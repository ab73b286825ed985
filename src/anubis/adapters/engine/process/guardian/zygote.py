"""Fork one shim per run, tell the engine when each ends, and guard the runs of dead shims.

Started by the engine as a bare interpreter with a socket as descriptor 3. It speaks lines:

engine: ``start <run>``            zygote: ``forked <run>`` or ``refused <run> <why>``
engine: ``bye`` before it leaves   zygote: ``ended <run>``

When the engine dies without a ``bye`` the zygote starts the runtime again, so that what still
runs will be finished. It leaves when it has nobody to serve and nothing to guard.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import sys

from anubis.adapters.engine.process.guardian import (
    files,
    keeper,
    linux,
    recovery,
    revival,
    shim,
    tree,
)

ENGINE = 3  #: the descriptor of the socket to the engine
RETRY_SECONDS = 0.05


class Zygote:
    """The parent of all shims."""

    def __init__(self, root: str, revive: list[str] | None) -> None:
        self._root = root
        self._revive = revive
        self._process = os.getpid()
        self._has_engine = True
        self._input = b""
        self._shims: dict[int, str] = {}  #: process id to run
        self._held: dict[str, list[int]] = {}  #: run to the FIFOs we keep open for it
        self._lost: dict[str, str] = {}  #: runs whose shim died, and how
        self._wake = shim.wake_on_children()
        self._keeper, self._line = keeper.start(root, revive)

    def serve(self) -> None:
        """Until nobody needs us."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        poll.register(ENGINE, select.POLLIN)
        while self._has_engine or self._shims or self._lost:
            ready = {ready for ready, _ in poll.poll(RETRY_SECONDS * 1000 if self._lost else None)}
            if self._wake in ready:
                os.read(self._wake, 4096)
            if ENGINE in ready and not self._listen():
                poll.unregister(ENGINE)
            self._reap()
            for run_id in list(self._lost):
                self._settle(run_id)

    def _listen(self) -> bool:
        """Obey the engine; False when it is gone."""
        try:
            data = os.read(ENGINE, 65536)
        except ConnectionResetError:
            data = b""
        *lines, self._input = (self._input + data).split(b"\n")
        for line in lines:
            word, _, run_id = line.decode().partition(" ")
            if word == "start":
                self._start(run_id)
            elif word == "bye":
                self._revive = None
                self._instruct("bye")
        if not data:
            self._has_engine = False
            if self._revive:
                revival.start_detached(self._revive)
        return bool(data)

    def _start(self, run_id: str) -> None:
        directory = f"{self._root}/{run_id}"
        if run_id in self._held:  # it has a shim, or a dead one that we are about to finish
            self._tell(f"forked {run_id}")
            return
        if files.is_container(directory):
            shim.container_guard()  # once, for all that are forked from us
        try:
            self._hold(run_id, directory)
            process = os.fork()
        except OSError as error:
            self._let_go(run_id)
            self._tell(f"refused {run_id} {error}")
            return
        if process == 0:
            self._become_shim(directory)
        self._shims[process] = run_id
        self._tell(f"forked {run_id}")

    def _hold(self, run_id: str, directory: str) -> None:
        """Keep the pipes alive whatever happens to the shim: what is in them is not lost."""
        self._held[run_id] = recovery.hold(directory)
        self._instruct(f"hold {run_id}")

    def _let_go(self, run_id: str) -> None:
        for descriptor in self._held.pop(run_id, ()):
            os.close(descriptor)
        self._instruct(f"drop {run_id}")

    def _instruct(self, line: str) -> None:
        """Speak to the keeper; one that cannot listen is replaced when it is dead."""
        with contextlib.suppress(BrokenPipeError, BlockingIOError):
            os.write(self._line, f"{line}\n".encode())

    def _replace_keeper(self) -> None:
        os.close(self._line)
        self._keeper, self._line = keeper.start(self._root, self._revive)
        for run_id in self._held:
            self._instruct(f"hold {run_id}")

    def _become_shim(self, directory: str) -> None:
        """In the child: guard the run, then vanish. Never returns."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            os.closerange(ENGINE, 1 << 16)
            gc.enable()
            shim.main(directory)
            code = 0
            if self._revive and os.getppid() != self._process:
                revival.start_detached(self._revive)
        finally:
            os._exit(code)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                process, status = ended
                run_id = self._shims.pop(process, None)
                if run_id is not None:
                    self._note_end(run_id, status)
                elif process == self._keeper:
                    self._replace_keeper()

    def _note_end(self, run_id: str, status: int) -> None:
        if status == 0 or files.has_ended(f"{self._root}/{run_id}"):
            self._conclude(run_id)
        elif status & 0x7F:
            self._lost[run_id] = f"the shim was killed by signal {status & 0x7F}"
        else:
            self._lost[run_id] = f"the shim ended with exit code {status >> 8}"

    def _settle(self, run_id: str) -> None:
        """Finish what a dead shim left; try again soon if an engine is at it already."""
        try:
            directory = f"{self._root}/{run_id}"
            if not recovery.recover(directory, self._lost[run_id], self._orphans):
                return
            recovery.kill(self._orphans)  # should an engine have been faster than we were
        except (OSError, ValueError) as error:  # a full disk: the engine will see what we saw
            sys.stderr.write(f"{run_id}: {error}\n")
        del self._lost[run_id]
        self._conclude(run_id)

    def _orphans(self) -> list[int]:
        """What dead shims left to us. Every other child of ours is a shim or the keeper."""
        ours = {self._keeper, *self._shims}
        children = [child for child in tree.children(self._process) if child not in ours]
        below = [process for child in children for process in tree.descendants(child)]
        return [process for process in children + below if tree.is_running(process)]

    def _conclude(self, run_id: str) -> None:
        self._let_go(run_id)
        self._tell(f"ended {run_id}")

    def _tell(self, line: str) -> None:
        """The files hold the truth; a message that cannot be sent is only slower news."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, BlockingIOError):
            os.write(ENGINE, line.replace("\n", " ").encode() + b"\n")


def _forget_the_starter() -> None:
    """Keep nothing of the process that started us but its environment."""
    os.closerange(ENGINE + 1, 1 << 16)
    os.set_blocking(ENGINE, False)
    os.set_inheritable(ENGINE, False)
    os.chdir("/")
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # A closed pipe and a file grown too large shall be errors we can report, not our death.
    ours = {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ}
    for number in signal.valid_signals() - ours:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """Arguments: the engine's directory, and how to start the runtime again, as JSON."""
    root, revive = sys.argv[1:]
    _forget_the_starter()
    linux.adopt_orphans(True)
    linux.name_process("anubis-zygote")
    gc.disable()
    gc.freeze()  # shims share these pages for good
    Zygote(root, json.loads(revive)).serve()
