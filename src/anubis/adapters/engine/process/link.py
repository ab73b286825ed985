"""The engine's end of the line to its zygote: start it, ask it, hear from it.

A zygote that died is replaced when the next run is started; the shims it forked go on without it.
Nothing here is the truth about a run, that is in the run's directory: a lost message costs time,
never a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import select
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import anubis
from anubis.domain.errors import EngineUnavailable

ANSWER_SECONDS = 30.0
"""A fork takes a millisecond; a machine that needs half a minute is not available."""

FAREWELL_SECONDS = 2.0

_BOOTSTRAP = (
    "import sys; sys.path.append(sys.argv.pop(1));"
    "from anubis.adapters.engine.process.guardian.zygote import main; main()"
)


class ZygoteLink:
    """Ask for shims, by the names of units' directories.

    ``on_end`` is called with each that the zygote saw ending.
    """

    def __init__(
        self, directory: Path, revive: tuple[str, ...] | None, on_end: Callable[[str], None]
    ) -> None:
        self._directory = directory
        self._log = directory.parent / "guardian.log"  #: tracebacks of zygotes and shims
        self._revive = revive
        self._on_end = on_end
        self._socket: socket.socket | None = None
        self._process = 0
        self._dead: list[int] = []  #: zygotes to be reaped
        self._input = b""
        self._answers: dict[str, asyncio.Future[str]] = {}
        self._serves: set[str] = set()
        # What programs get: a service raises its own limit for its connections later.
        self._most_files = resource.getrlimit(resource.RLIMIT_NOFILE)

    @property
    def process(self) -> int:
        """The zygote's process id; 0 when there is none."""
        return self._process

    def serves(self, name: str) -> bool:
        """Whether the living zygote will tell us the end of this unit."""
        return name in self._serves or name in self._answers

    async def start(self, name: str) -> None:
        """Have a shim forked for this unit.

        Raises EngineUnavailable if the zygote refused, or could not be reached twice in a row.
        """
        for attempt in (1, 2):
            try:
                answer = await self._ask(name)
                break
            except OSError as error:
                if attempt == 2:
                    message = f"the zygote cannot be reached ({error}); see {self._log}"
                    raise EngineUnavailable(message) from error
        if answer:
            raise EngineUnavailable(f"no process could be forked: {answer}")

    def prepare(self) -> None:
        """Have a zygote now. Raises OSError if none can be started."""
        self._connected()

    async def _ask(self, name: str) -> str:
        """Empty when the shim was forked, else why not. Raises OSError when the zygote is gone."""
        line = self._connected()
        loop = asyncio.get_running_loop()
        answer = self._answers.get(name)
        if answer is None:
            answer = self._answers[name] = loop.create_future()
            await self._send(line, f"start {name}\n")
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await asyncio.shield(answer)
        except TimeoutError:
            self._answers.pop(name, None)
            raise

    async def _send(self, line: socket.socket, message: str) -> None:
        try:
            await asyncio.get_running_loop().sock_sendall(line, message.encode())
        except OSError:
            if self._socket is line:  # dead, and we heard it here first
                self._lose()
            raise

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._launch()
        assert self._socket is not None
        return self._socket

    def _launch(self) -> None:
        self._bury()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        source = str(Path(anubis.__file__).parent.parent)
        revive = json.dumps(self._revive)
        argv = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOTSTRAP]
        argv += [source, str(self._directory), revive]
        try:
            with theirs:
                self._process = _spawn(argv, theirs.fileno(), self._log)
                # Before it is asked for a shim, so that all of them inherit it.
                resource.prlimit(self._process, resource.RLIMIT_NOFILE, self._most_files)
        except OSError:
            ours.close()
            raise
        self._socket, self._input = ours, b""
        asyncio.get_running_loop().add_reader(ours, self._hear)

    def _hear(self) -> None:
        assert self._socket is not None
        try:
            data = self._socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, self._input = (self._input + data).split(b"\n")
        for line in lines:
            self._obey(*line.decode(errors="replace").split(" ", 2))
        if not data:
            self._lose()

    def _obey(self, word: str, name: str, why: str = "") -> None:
        if word == "ended":
            self._serves.discard(name)
            self._on_end(name)
            return
        if word == "forked":
            self._serves.add(name)
        answer = self._answers.pop(name, None)
        if answer is not None and not answer.done():
            answer.set_result(why)

    def _lose(self) -> None:
        """The zygote is gone. Whoever follows one of its runs must look for itself from now on."""
        self._disconnect()
        self._bury()
        answers, self._answers = self._answers, {}
        for answer in answers.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError("the zygote died"))
                answer.exception()  # nobody may be waiting any more
        served, self._serves = self._serves, set()
        for name in served:
            self._on_end(name)

    def _bury(self) -> None:
        """Reap our dead zygotes; the last one may still be dying, and is tried again later."""
        if self._process:
            self._dead.append(self._process)
            self._process = 0
        for process in list(self._dead):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(process, os.WNOHANG) == (0, 0):
                    continue
            self._dead.remove(process)

    def _disconnect(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    async def close(self, *, says_goodbye: bool = True) -> None:
        """Leave. A zygote with runs to guard stays, any other leaves at once; one that heard no
        good-bye starts the runtime again first.
        """
        if self._socket is None:
            self._bury()
            return
        is_idle = not self._serves
        with contextlib.suppress(OSError):
            if says_goodbye:
                await asyncio.get_running_loop().sock_sendall(self._socket, b"bye\n")
        self._disconnect()
        if is_idle:
            await asyncio.to_thread(_await_end, self._process)
        self._bury()


def _spawn(argv: list[str], engine: int, log: Path) -> int:
    """Start the zygote in a session of its own, with the socket as its only extra descriptor.

    It must hold nothing of ours: a terminal or pipe would stay open for as long as a run lasts.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDWR, 0),
        (os.POSIX_SPAWN_DUP2, 0, 1),
        (os.POSIX_SPAWN_OPEN, 2, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, engine, 3),
    ]
    environment = {k: v for k, v in os.environ.items() if k != "ANUBIS_RUN_ID"}
    return os.posix_spawn(argv[0], argv, environment, file_actions=actions, setsid=True)


def _await_end(process: int) -> None:
    """Give an idle zygote the moment it needs; one that guards something after all stays."""
    try:
        descriptor = os.pidfd_open(process)
    except OSError:  # gone already, or a kernel before 5.3
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(FAREWELL_SECONDS * 1000)
    finally:
        os.close(descriptor)
