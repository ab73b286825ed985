"""The installed command, driven as a user would, in a home of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from anubis.runtime import locking

ANUBIS = str(Path(sys.executable).with_name("anubis"))
PATIENCE = 60.0
"""Seconds after which something that should happen will not happen any more."""

DESCRIPTOR = """\
spec_version = "0.1.0"

[info]
description = "For an acceptance test"
execution_engine = "process"

[info.labels]
task_name = "{name}"

[ml]
benchmark_code = "sh {name}.sh"

[limits]
grace = "{grace}"

[[output.metrics]]
name = "loss"
units = "nats"
pattern = 'loss=([0-9.]+)'
"""


class Home:
    """An ``ANUBIS_HOME``, a folder with descriptors, and the command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "home"
        self.environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("ANUBIS_")},
            "ANUBIS_HOME": str(self.path),
        }

    def descriptor(self, program: str, name: str = "bench", *, grace: str = "10s") -> str:
        """Write a descriptor whose program is a shell script; its file name."""
        (self.folder / f"{name}.sh").write_text(program)
        (self.folder / f"{name}.toml").write_text(DESCRIPTOR.format(name=name, grace=grace))
        return f"{name}.toml"

    def call(
        self, *words: str, given: bytes = b"", environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end."""
        return subprocess.run(
            [ANUBIS, *words],
            cwd=self.folder,
            env={**self.environment, **(environment or {})},
            input=given,
            capture_output=True,
            timeout=PATIENCE,
        )

    def ask(self, *words: str) -> str:
        """The answer of a command that must succeed."""
        result = self.call(*words)
        assert result.returncode == 0, result.stderr.decode()
        return result.stdout.decode()

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command and go on."""
        return subprocess.Popen(
            [ANUBIS, *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def wait_for(self, text: str, *words: str) -> str:
        """Ask until the answer has this text."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            result = self.call(*words)
            if text in (answer := result.stdout.decode()):
                return answer
            time.sleep(0.1)
        pytest.fail(f"{' '.join(words)} never said {text!r}")

    def stop(self) -> None:
        """Stop the background runtime of this home and wait until it is gone.

        The lock decides whether there is one: a test that killed it may have caused another to
        start in this very moment, before its number is written.
        """
        give_up = time.monotonic() + PATIENCE
        while locking.is_held(self.path / "runtime.lock"):
            assert time.monotonic() < give_up, f"the runtime of {self.path} did not stop"
            with contextlib.suppress(FileNotFoundError, ValueError, ProcessLookupError):
                os.kill(int((self.path / "runtime.pid").read_text()), signal.SIGTERM)
            time.sleep(0.05)

    def programs(self) -> list[str]:
        """Processes of this home's runs that are still there."""
        mark = f"ANUBIS_HOME={self.path}".encode()
        return [
            f"{entry.name}: {(entry / 'cmdline').read_bytes()!r}"
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and _is_program(entry, mark)
        ]


def _is_program(entry: Path, mark: bytes) -> bool:
    try:
        variables = (entry / "environ").read_bytes().split(b"\0")
    except OSError:  # ended, or not ours
        return False
    return mark in variables and any(one.startswith(b"ANUBIS_RUN_ID=") for one in variables)


@contextlib.contextmanager
def _home(folder: Path) -> Iterator[Home]:
    home = Home(folder)
    yield home
    home.stop()
    left = home.programs()
    assert not left, f"processes of ended runs are left: {left}"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home of its own for one test."""
    with _home(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home for all tests of a module that only look."""
    with _home(tmp_path_factory.mktemp("shared")) as made:
        yield made
