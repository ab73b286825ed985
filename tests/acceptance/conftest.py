"""The installed command, driven as a user would, in a home of its own.

A module whose ``COLUMNS`` name both has each of its tests called twice: with commands that work on
this machine, and with the same commands asking a service that is registered.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests import docker_images, real_parts

from anubis.adapters.engine.docker import composing
from anubis.runtime import locking

from .serving import ANUBIS, BARE, PATIENCE, Service, serving

__all__ = ["ANUBIS", "PATIENCE", "Home", "Service", "serving"]

SAMPLES = Path(__file__).parents[2] / "samples"

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

    def __init__(self, folder: Path, runs: Path | None = None) -> None:
        self.folder = folder
        self.own = folder / "home"  #: of whoever calls commands
        self.path = runs or self.own  #: where runs are kept
        self.environment = {**BARE, "ANUBIS_HOME": str(self.own)}

    def descriptor(self, program: str, name: str = "bench", *, grace: str = "10s") -> str:
        """Write a descriptor whose program is a shell script; its file name."""
        (self.folder / f"{name}.sh").write_text(program)
        (self.folder / f"{name}.toml").write_text(DESCRIPTOR.format(name=name, grace=grace))
        return f"{name}.toml"

    def scheduled(self, cron: str, program: str = "echo loss=1") -> str:
        """Write a descriptor with a schedule, submit it, and give the schedule's id."""
        file = self.descriptor(program, "nightly")
        path = self.folder / file
        path.write_text(path.read_text().replace("[info]\n", f'[info]\nscheduling = "{cron}"\n', 1))
        result = self.call("submit", file)
        assert result.returncode == 0, result.stderr.decode()
        assert b"next:" in result.stderr
        return result.stdout.decode().strip()

    def schedule(self, schedule_id: str) -> Any:
        """What is known of a schedule."""
        return json.loads(self.ask("schedule", "show", schedule_id, "--json"))

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
        return [
            f"{entry.name}: {(entry / 'cmdline').read_bytes()!r}"
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and self._is_program(entry)
        ]

    def containers(self) -> list[str]:
        """Containers, networks and volumes of this home's runs that are still there."""
        if not (self.path / "docker").exists():
            return []  # it never had any
        return docker_images.labelled(f"anubis.home={composing.home_id(self.path)}")

    def wait_for_removal(self) -> None:
        """Containers go right after their run has ended; not in the same instant."""
        give_up = time.monotonic() + PATIENCE
        while self.containers() and time.monotonic() < give_up:
            time.sleep(0.2)

    def _is_program(self, entry: Path) -> bool:
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            folder = (entry / "cwd").readlink()
        except OSError:  # ended, or not ours
            return False
        if not any(one.startswith(b"ANUBIS_RUN_ID=") for one in variables):
            return False
        # A service gives runs nothing of its environment, but they start in our folder.
        ours = f"ANUBIS_HOME={self.path}".encode() in variables
        return ours or folder.is_relative_to(self.folder)


@contextlib.contextmanager
def _home(folder: Path) -> Iterator[Home]:
    home = Home(folder)
    yield home
    home.wait_for_removal()
    home.stop()
    _must_be_quiet(home)


@contextlib.contextmanager
def _remote_home(folder: Path, service: Service) -> Iterator[Home]:
    """A home whose commands ask the service, which is left without runs again."""
    home = Home(folder, runs=service.home)
    home.ask("register", service.endpoint)
    yield home
    if runs := home.ask("list", "--ids", "--limit", "1000").split():
        home.ask("purge", *runs)
    if schedules := home.ask("schedule", "list", "--ids").split():
        home.ask("schedule", "remove", *schedules)
    home.wait_for_removal()
    _must_be_quiet(home)


def _must_be_quiet(home: Home) -> None:
    left = home.programs()
    assert not left, f"processes of ended runs are left: {left}"
    left = home.containers()
    assert not left, f"of ended runs are left: {left}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Call the tests of a module once for each of its columns."""
    if "column" in metafunc.fixturenames:
        columns = getattr(metafunc.module, "COLUMNS", ("embedded",))
        metafunc.parametrize("column", columns, scope="module", indirect=True)


@pytest.fixture(scope="session")
def sample_images() -> Iterator[None]:
    """The images that descriptors of samples name, made from Debian packages; but for that of
    hello-world, which is made from our own.
    """
    base = real_parts.python_mpi()
    for name in ("failing", "noisy", "inference", "mpi", "dataset"):
        docker_images.build(SAMPLES / name, f"anubis-samples/{name}", base)
    with docker_images.lent("python:3.11-slim", base):
        yield


@pytest.fixture(scope="module")
def column(request: pytest.FixtureRequest) -> str:
    """Who answers commands: this machine (``embedded``), or a service (``remote``)."""
    return str(request.param)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service for all tests of a module; each leaves it without runs."""
    with serving(tmp_path_factory.mktemp("service")) as made:
        yield made


@pytest.fixture
def home(column: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Home]:
    """A home of its own for one test."""
    if column == "embedded":
        opened = _home(tmp_path)
    else:  # started when the first test asks for it, and for none that does not
        opened = _remote_home(tmp_path, request.getfixturevalue("service"))
    with opened as made:
        yield made


@pytest.fixture(scope="module")
def shared_home(column: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home for all tests of a module that only look; its service is no other test's."""
    folder = tmp_path_factory.mktemp("shared")
    with contextlib.ExitStack() as stack:
        if column == "embedded":
            opened = _home(folder)
        else:
            opened = _remote_home(folder, stack.enter_context(serving(folder)))
        yield stack.enter_context(opened)
