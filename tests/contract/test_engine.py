"""The fake and the process engine keep the promises of the port."""

from __future__ import annotations

import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from anubis.adapters.engine.fake import FakeEngine, Script
from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.domain import blanks
from anubis.domain.observation import EndCause, Stream
from anubis.domain.plan import Plan, Unit
from anubis.ports.engine import Engine
from anubis.testing.contracts.engine import EngineContract, ServiceContract, a_plan, clear
from anubis.testing.contracts.engine.serving import PORT


class TestFake(EngineContract):
    """Its scripts need no translation; plans carry the place of theirs."""

    def plan(self, program: Script) -> Plan:
        self.scripts.append(program)
        return a_plan(str(len(self.scripts) - 1))

    @pytest.fixture
    async def engine(self) -> Engine:
        self.scripts: list[Script] = []
        return FakeEngine(lambda plan, unit: self.scripts[int(plan.unit(unit).command[0])])


class TestProcess(EngineContract):
    """Scripts become shell programs."""

    def plan(self, program: Script) -> Plan:
        if program.cause is EndCause.NOT_STARTED:
            return a_plan("no-program-has-this-name")
        return a_plan("sh", "-c", shell(program))

    @pytest.fixture
    async def engine(self, tmp_path: Path) -> AsyncIterator[Engine]:
        async with ProcessEngine(tmp_path / "runs", revive=None) as engine:
            yield engine
            await clear(engine)


HTTPD = """
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        is_ready = self.path == "/ready"
        self.send_response(200 if is_ready else 404)
        self.end_headers()
        self.wfile.write(b"hello\\n" if is_ready else b"no\\n")

    def log_message(self, *_):
        pass

print("here", flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

CLIENT = """
import sys, urllib.request
sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())
"""


class TestServicesOfProcess(ServiceContract):
    """A small server and its client, in Python."""

    @pytest.fixture
    async def engine(self, tmp_path: Path) -> AsyncIterator[Engine]:
        self.directory = tmp_path / "runs"
        async with self.attached() as engine:
            yield engine
            await clear(engine)

    def attached(self) -> ProcessEngine:
        return ProcessEngine(self.directory, revive=None)

    def server(self) -> Unit:
        command = (sys.executable, "-S", "-c", HTTPD, blanks.port("server", PORT))
        return Unit(name="server", command=command, environment={}, ports=(PORT,))

    def client(self) -> Unit:
        url = f"http://{blanks.host('server')}:{blanks.port('server', PORT)}/ready"
        command = (sys.executable, "-S", "-c", CLIENT, url)
        return Unit(name="client", command=command, environment={})


def shell(program: Script) -> str:
    """The same program, in the language of the shell."""
    targets = {Stream.STDOUT: "&1", Stream.STDERR: "&2"}
    lines = ["trap '' TERM"] if program.ignores_sigterm else []
    lines += [f"printf %s {shlex.quote(d.decode())} >{targets[s]}" for s, d in program.output]
    fifo = '"$BENCHMARK_AI_FIFO_FILEPATH"'
    lines += [f"printf %s {shlex.quote(d.decode())} >{fifo}" for d in program.emitted]
    if program.endless:
        lines.append("while :; do sleep 60; done" if program.ignores_sigterm else "exec sleep 600")
    return "\n".join([*lines, f"exit {program.exit_code}"])
