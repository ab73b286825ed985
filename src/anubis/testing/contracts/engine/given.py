"""Where the tests of the contract start from: programs, plans, and ways to see a run through."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Sequence
from datetime import timedelta

from anubis.adapters.engine.fake import Script
from anubis.domain.observation import EndCause, Observation, OutputChunk, Stream, UnitEnded
from anubis.domain.plan import SOLE, Limits, Plan, Unit
from anubis.domain.run import RunId
from anubis.ports.engine import Engine
from anubis.testing import builders

SECOND = timedelta(seconds=1)
PATIENCE_SECONDS = 60.0
"""Never reached by an engine that works; a suite must not hang on one that does not."""

QUIET = Script()
TALKING = Script(output=((Stream.STDOUT, b"one\n"), (Stream.STDOUT, b"two\n")))
COMPLAINING = Script(output=((Stream.STDERR, b"oh no\n"),), exit_code=3)
EMITTING = Script(emitted=(b'{"loss": 1.5}\n',))
ENDLESS = Script(output=((Stream.STDOUT, b"here\n"),), endless=True)
DEAF = Script(output=((Stream.STDOUT, b"here\n"),), endless=True, ignores_sigterm=True)
MISSING = Script(cause=EndCause.NOT_STARTED, message="the program was not found")

_numbers = itertools.count(os.getpid() * 10_000)
"""Real engines find what belongs to a run by its id, on the whole machine: tests that go on beside
each other in several processes must not share ids."""


def a_plan(*command: str, limits: Limits | None = None, **fields: object) -> Plan:
    """A plan of one unit called ``benchmark``."""
    fields = {"environment": {}, **fields}
    unit = Unit(name="benchmark", command=command, **fields)  # type: ignore[arg-type] # any field
    return Plan(units=(unit,), deciding=unit.name, limits=limits or Limits())


def a_new_run() -> RunId:
    """An id that no other test on this machine has."""
    return builders.a_run_id(next(_numbers))


async def watch(engine: Engine, run_id: RunId, unit: str = SOLE) -> list[Observation]:
    """Everything until the end."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [observation async for observation in engine.observe(run_id, unit)]


async def run(engine: Engine, plan: Plan) -> list[Observation]:
    """Start a new run and see it through."""
    run_id = a_new_run()
    await engine.start(run_id, plan)
    return await watch(engine, run_id)


async def until_it_speaks(engine: Engine, run_id: RunId, unit: str = SOLE) -> None:
    """Wait until the program has written something; it runs for sure then."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for observation in engine.observe(run_id, unit):
            if isinstance(observation, OutputChunk):
                return
    raise AssertionError("the run ended without a word")


def output(seen: Sequence[Observation], stream: Stream = Stream.STDOUT) -> bytes:
    """What a stream carried, joined."""
    chunks = (o for o in seen if isinstance(o, OutputChunk) and o.stream is stream)
    return b"".join(chunk.data for chunk in chunks)


def end(seen: Sequence[Observation]) -> UnitEnded:
    """The last observation, which must be the only end."""
    ends = [observation for observation in seen if isinstance(observation, UnitEnded)]
    assert seen[-1:] == ends
    return ends[0]


async def clear(engine: Engine) -> None:
    """Stop and remove all that an engine has, as a test that is over must."""
    for run_id in await engine.leftovers():
        await engine.stop(run_id, grace=timedelta(), cause=EndCause.CANCELED)
        for unit in await engine.started(run_id):
            await watch(engine, run_id, unit)
        await engine.remove(run_id)
