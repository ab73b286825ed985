"""The fake and the process engine keep the promises of the port."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from anubis.adapters.engine.fake import FakeEngine, Script
from anubis.adapters.engine.process.engine import ProcessEngine
from anubis.domain.observation import EndCause, Stream
from anubis.domain.plan import Plan
from anubis.ports.engine import Engine
from anubis.testing.contracts.engine import EngineContract, a_plan


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
            for run_id in await engine.leftovers():
                await engine.stop(run_id, grace=timedelta(), cause=EndCause.CANCELED)
                async for _ in engine.observe(run_id):
                    pass
                await engine.remove(run_id)


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
