"""A real ``anubis serve``, started and stopped as its operator would."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

ANUBIS = str(Path(sys.executable).with_name("anubis"))
PATIENCE = 60.0
"""Seconds after which something that should happen will not happen any more."""

DESCRIPTOR = """\
spec_version = "0.1.0"
[info]
description = "For an acceptance test of the service"
execution_engine = "process"
[ml]
benchmark_code = "{command}"
[limits]
grace = "5s"
"""


class Served:
    """One service that listens."""

    def __init__(self, process: subprocess.Popen[bytes], address: str) -> None:
        self.process = process
        self.address = address
        self._client = httpx.Client(base_url=address, timeout=30)

    def client(
        self, secret: str | None = None, context: ssl.SSLContext | bool = True
    ) -> httpx.Client:
        """Somebody who asks it."""
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=30, verify=context)

    def submit(self, command: str, secret: str | None = None) -> str:
        """Hand in a program; the id of its run."""
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        body = {"descriptor": DESCRIPTOR.format(command=command)}
        answer = self._client.post("/api/v1/runs", json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["run"]["id"])

    def run(self, run_id: str) -> dict[str, Any]:
        """A run as it is now."""
        return dict(self._client.get(f"/api/v1/runs/{run_id}").json())

    def wait_for(self, run_id: str, *states: str) -> dict[str, Any]:
        """Ask until the run is in one of these states."""
        give_up = time.monotonic() + PATIENCE
        while (run := self.run(run_id))["state"] not in states:
            assert time.monotonic() < give_up, f"{run_id} is {run['state']}, not one of {states}"
            time.sleep(0.05)
        return run

    def counts(self) -> dict[str, int]:
        """How many runs are in which state."""
        lines = self._client.get("/metrics").text.splitlines()
        found = [line for line in lines if line.startswith("anubis_runs{")]
        return {line.split('"')[1]: int(float(line.split()[-1])) for line in found}

    def wait_for_count(self, state: str, number: int) -> None:
        """Ask until so many runs are in a state."""
        give_up = time.monotonic() + PATIENCE
        while (counts := self.counts()).get(state, 0) < number:
            assert time.monotonic() < give_up, counts
            time.sleep(0.1)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send it a signal and wait; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def forget(self) -> None:
        """Close what was opened to talk to it."""
        self._client.close()
        assert self.process.stdout is not None
        self.process.stdout.close()


def start(home: Any, *options: str, inherits: socket.socket | None = None) -> Served:
    """Start a service of this home and wait until it listens: on any port, or on a socket that it
    inherits as a service of systemd does.
    """
    command = [ANUBIS, "serve", "--port", "0", *options]
    if inherits is not None:
        hand_over = f'exec 3<&{inherits.fileno()}; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'
        command = ["bash", "-c", hand_over, "bash", *command]
    with (home.folder / "serve.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=home.folder,
            env=home.environment,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=[] if inherits is None else [inherits.fileno()],
        )
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    if not line.startswith("listening on "):
        process.communicate(timeout=PATIENCE)
        raise AssertionError((home.folder / "serve.log").read_text())
    return Served(process, line.removeprefix("listening on ").strip())


@contextlib.contextmanager
def finishing(served: Served) -> Iterator[Served]:
    """See to it that a service is gone at the end."""
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.end()
        served.forget()


@contextlib.contextmanager
def serving(home: Any, *options: str) -> Iterator[Served]:
    """A service that is gone at the end, whatever happened to it."""
    with finishing(start(home, *options)) as served:
        yield served


def refused(home: Any, *options: str) -> str:
    """What a service says that does not start."""
    result: subprocess.CompletedProcess[bytes] = home.call("serve", *options)
    assert result.returncode == 2, result.stderr.decode()
    assert b"Traceback" not in result.stderr
    return result.stderr.decode()


def token(home: Any, user: str, role: str) -> str:
    """Make a token on the machine of the service; its secret."""
    return str(home.ask("token", "create", user, "--role", role)).strip()


def note(home: Any) -> dict[str, Any]:
    """What the home says about its service."""
    return dict(json.loads((home.path / "service.json").read_text()))
