"""Units that talk to each other: they find one another, and are asked whether they are ready.

For engines that really run something::

    class TestServicesOfMyEngine(ServiceContract):
        @pytest.fixture
        async def engine(self) -> AsyncIterator[Engine]: ...

        def server(self) -> Unit:
            return Unit(name="server", command=("my-httpd", blanks.port("server", 8080)), ...)

        def client(self) -> Unit: ...

        def attached(self) -> AbstractAsyncContextManager[Engine]:
            return MyEngine(...)  # to the same place as the fixture's
"""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

from anubis.domain.observation import (
    Condition,
    EndCause,
    UnitReady,
    UnitSilent,
    UnitUnready,
)
from anubis.domain.plan import Limits, Plan, Probe, ProbeKind, Unit
from anubis.domain.run import RunId
from anubis.ports.engine import Engine
from anubis.testing.contracts.engine.given import (
    PATIENCE_SECONDS,
    SECOND,
    a_new_run,
    end,
    output,
    until_it_speaks,
    watch,
)

PORT = 8080
OFTEN = timedelta(milliseconds=50)
PATIENT = timedelta(seconds=5)
READY = Probe(kind=ProbeKind.HTTP, port=PORT, path="/ready", period=OFTEN, timeout=PATIENT)
OPEN = Probe(kind=ProbeKind.TCP, port=PORT, period=OFTEN, timeout=PATIENT)
MISSING_PAGE = dataclasses.replace(READY, path="/missing")


async def until(
    engine: Engine, run_id: RunId, plan: Plan, kind: type[Condition], words: str = ""
) -> list[Condition]:
    """What the server answered up to the first condition of this kind that says these words."""
    seen: list[Condition] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for condition in engine.probe(run_id, plan, "server"):
            seen.append(condition)
            message = "" if isinstance(condition, UnitReady) else condition.message
            if isinstance(condition, kind) and words in message:
                break
    return seen


class ServiceContract:
    """A server and its client are one run."""

    def server(self) -> Unit:
        """A unit ``server`` that declares port 8080 and answers there: ``/ready`` with a page that
        says ``hello`` and a line end, all else with 404. It writes something before it listens.
        """
        raise NotImplementedError

    def client(self) -> Unit:
        """A unit ``client`` that writes what it got as ``/ready`` of the server to its stdout."""
        raise NotImplementedError

    def attached(self) -> AbstractAsyncContextManager[Engine]:
        """Another engine object on the same place, as after a restart of the service."""
        raise NotImplementedError

    def service(self, readiness: Probe | None = READY, liveness: Probe | None = None) -> Plan:
        """The two of them, with these probes."""
        server = dataclasses.replace(
            self.server(), readiness=readiness, liveness=liveness, is_service=True
        )
        client = dataclasses.replace(self.client(), after=("server",))
        return Plan(units=(server, client), deciding="client", limits=Limits())

    async def test_a_client_reaches_the_server_that_is_ready(self, engine: Engine) -> None:
        """By the host name and the port that the engine fills in."""
        run_id, plan = a_new_run(), self.service()
        await engine.start(run_id, plan, "server")
        assert isinstance((await until(engine, run_id, plan, UnitReady))[-1], UnitReady)
        await engine.start(run_id, plan, "client")
        seen = await watch(engine, run_id, "client")
        assert (output(seen), end(seen).exit_code) == (b"hello\n", 0)
        await self.dismiss(engine, run_id)

    async def test_two_servers_that_declare_the_same_port_do_not_disturb_each_other(
        self, engine: Engine
    ) -> None:
        """Each client reaches its own."""
        plan = self.service(readiness=OPEN)
        runs = [a_new_run(), a_new_run()]
        await asyncio.gather(*(engine.start(run_id, plan, "server") for run_id in runs))
        for run_id in runs:
            await until(engine, run_id, plan, UnitReady)
        await self.dismiss(engine, runs[0])
        await engine.start(runs[1], plan, "client")
        assert output(await watch(engine, runs[1], "client")) == b"hello\n"
        await self.dismiss(engine, runs[1])

    async def test_a_server_that_answers_something_else_is_not_ready(self, engine: Engine) -> None:
        """What it answers is told, once."""
        run_id, plan = a_new_run(), self.service(readiness=MISSING_PAGE)
        await engine.start(run_id, plan, "server")
        seen = await until(engine, run_id, plan, UnitUnready, "404")
        assert not any(isinstance(condition, UnitReady) for condition in seen)
        assert {condition.unit for condition in seen} == {"server"}
        await self.dismiss(engine, run_id)

    async def test_a_server_that_fails_its_liveness_probe_is_silent(self, engine: Engine) -> None:
        """And is not asked any more; nobody stops it but who asked."""
        run_id, plan = a_new_run(), self.service(readiness=None, liveness=MISSING_PAGE)
        await engine.start(run_id, plan, "server")
        async with asyncio.timeout(PATIENCE_SECONDS):
            seen = [condition async for condition in engine.probe(run_id, plan, "server")]
        ready, silent = seen
        assert isinstance(ready, UnitReady)
        assert isinstance(silent, UnitSilent)
        await self.dismiss(engine, run_id)

    async def test_a_server_that_was_stopped_is_no_longer_ready(self, engine: Engine) -> None:
        """The prober goes on until it is told to stop."""
        run_id, plan = a_new_run(), self.service()
        await engine.start(run_id, plan, "server")
        conditions = engine.probe(run_id, plan, "server")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not isinstance(await anext(conditions), UnitReady):
                pass
            await self.dismiss(engine, run_id)
            assert isinstance(await anext(conditions), UnitUnready)

    async def test_an_engine_that_comes_later_finds_the_units_and_their_places(
        self, engine: Engine
    ) -> None:
        """As after a restart of the service: what runs goes on, and what is missing is started."""
        run_id, plan = a_new_run(), self.service()
        await engine.start(run_id, plan, "server")
        await until_it_speaks(engine, run_id, "server")
        async with self.attached() as later:
            assert await later.started(run_id) == {"server"}
            await later.start(run_id, plan, "server")
            await until(later, run_id, plan, UnitReady)
            await later.start(run_id, plan, "client")
            assert output(await watch(later, run_id, "client")) == b"hello\n"
            await self.dismiss(later, run_id)
            await later.remove(run_id)
        assert list(await engine.leftovers()) == []

    async def dismiss(self, engine: Engine, run_id: RunId) -> None:
        """End the server, and see that the cause is kept."""
        await engine.stop(
            run_id, grace=10 * SECOND, cause=EndCause.DISMISSED, units=frozenset({"server"})
        )
        assert end(await watch(engine, run_id, "server")).cause is EndCause.DISMISSED
