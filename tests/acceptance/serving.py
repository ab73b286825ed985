"""A real ``anubis serve`` in a folder of its own, for tests that ask one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ANUBIS = str(Path(sys.executable).with_name("anubis"))
PATIENCE = 60.0
"""Seconds after which something that should happen will not happen any more."""

BARE = {name: text for name, text in os.environ.items() if not name.startswith("ANUBIS_")}
"""The environment, without what the person who runs the tests has set."""


class Service:
    """``anubis serve`` on a port of its own, which may be killed and come back."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.home = folder / "service"
        self.environment = {**BARE, "ANUBIS_HOME": str(self.home)}
        self.port = 0
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, again on the same port, and wait until it listens."""
        with (self.folder / "service.log").open("ab") as log:
            self._process = subprocess.Popen(
                [ANUBIS, "serve", "--port", str(self.port), *self._options],
                cwd=self.folder,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None
        said = self._process.stdout.readline().decode()
        assert said.startswith("listening on "), (self.folder / "service.log").read_text()
        self.port = int(said.rstrip().rpartition(":")[2])

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Send it a signal and wait until it is gone."""
        assert self._process is not None
        self._process.send_signal(number)
        self._process.communicate(timeout=PATIENCE)

    def kill(self) -> None:
        """Let it die without a word."""
        self.stop(signal.SIGKILL)

    def token(self, user: str, role: str) -> str:
        """The secret of a new token."""
        words = [ANUBIS, "token", "create", user, "--role", role]
        made = subprocess.run(words, env=self.environment, capture_output=True, check=True)
        return made.stdout.decode().strip()


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[Service]:
    """A service, until the end of the context."""
    service = Service(folder, *options)
    if "--require-tokens" in options:  # which needs somebody who could make more of them
        service.token("operator", "admin")
    try:
        service.start()
        yield service
    finally:
        service.stop()
