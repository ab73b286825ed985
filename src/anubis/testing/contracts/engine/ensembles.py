"""A plan of several units: each started, observed and stopped apart, all forgotten as one."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from anubis.adapters.engine.fake import Script
from anubis.domain import errors
from anubis.domain.observation import EndCause, Stream, UnitReady
from anubis.domain.plan import Limits, Plan
from anubis.domain.run import RunId
from anubis.ports.engine import Engine
from anubis.testing.contracts.engine.given import (
    COMPLAINING,
    ENDLESS,
    PATIENCE_SECONDS,
    QUIET,
    SECOND,
    TALKING,
    a_new_run,
    end,
    output,
    until_it_speaks,
    watch,
)


async def start_all(engine: Engine, plan: Plan) -> RunId:
    """A new run, all of whose units were started."""
    run_id = a_new_run()
    for unit in plan.units:
        await engine.start(run_id, plan, unit.name)
    return run_id


class EnsembleContract:
    """Several programs are one run."""

    def plan(self, program: Script) -> Plan:
        """The plan with which this engine runs ``program``."""
        raise NotImplementedError

    def ensemble(self, **programs: Script) -> Plan:
        """A plan of these units, the last of which decides."""
        units = tuple(
            dataclasses.replace(self.plan(program).units[0], name=name.replace("_", "-"))
            for name, program in programs.items()
        )
        return Plan(units=units, deciding=units[-1].name, limits=Limits())

    async def test_each_unit_is_observed_apart(self, engine: Engine) -> None:
        """With its own output and its own end, under its own name."""
        plan = self.ensemble(server_0=COMPLAINING, benchmark=TALKING)
        run_id = await start_all(engine, plan)
        server = await watch(engine, run_id, "server-0")
        benchmark = await watch(engine, run_id, "benchmark")
        assert output(server, Stream.STDERR) == b"oh no\n"
        assert output(benchmark) == b"one\ntwo\n"
        assert (end(server).exit_code, end(benchmark).exit_code) == (3, 0)
        assert {seen.unit for seen in server} == {"server-0"}
        assert {seen.unit for seen in benchmark} == {"benchmark"}

    async def test_units_of_the_same_name_in_two_runs_do_not_mix(self, engine: Engine) -> None:
        """A name is one within its run."""
        complaining = await start_all(engine, self.ensemble(client=COMPLAINING))
        talking = await start_all(engine, self.ensemble(client=TALKING))
        assert end(await watch(engine, complaining, "client")).exit_code == 3
        assert output(await watch(engine, talking, "client")) == b"one\ntwo\n"

    async def test_the_units_that_were_started_are_known(self, engine: Engine) -> None:
        """Whatever became of them, until they are forgotten."""
        plan = self.ensemble(scheduler=QUIET, server=ENDLESS, worker=QUIET)
        run_id = a_new_run()
        assert await engine.started(run_id) == frozenset()
        await engine.start(run_id, plan, "scheduler")
        assert await engine.started(run_id) == {"scheduler"}
        await engine.start(run_id, plan, "server")
        assert await engine.started(run_id) == {"scheduler", "server"}
        await watch(engine, run_id, "scheduler")
        await until_it_speaks(engine, run_id, "server")
        assert await engine.started(run_id) == {"scheduler", "server"}
        await engine.stop(run_id, grace=SECOND, cause=EndCause.CANCELED)
        await watch(engine, run_id, "server")
        await engine.remove(run_id)
        assert await engine.started(run_id) == frozenset()

    async def test_starting_a_unit_again_does_not_run_it_again(self, engine: Engine) -> None:
        """While another one goes on."""
        plan = self.ensemble(server=ENDLESS, client=TALKING)
        run_id = await start_all(engine, plan)
        first = await watch(engine, run_id, "client")
        for unit in ("server", "client"):
            await engine.start(run_id, plan, unit)
        assert await watch(engine, run_id, "client") == first
        await engine.stop(run_id, grace=10 * SECOND, cause=EndCause.CANCELED)
        assert output(await watch(engine, run_id, "server")) in (b"here\n", b"")

    async def test_a_unit_that_was_not_started_is_lost_at_once(self, engine: Engine) -> None:
        """Though its run has others."""
        run_id = await start_all(engine, self.ensemble(server=QUIET))
        await watch(engine, run_id, "server")
        [ended] = await watch(engine, run_id, "client")
        assert end([ended]).cause is EndCause.LOST

    async def test_stopping_a_unit_leaves_the_others(self, engine: Engine) -> None:
        """And the one that was dismissed stays dismissed when the rest is canceled."""
        plan = self.ensemble(server=ENDLESS, client=ENDLESS)
        run_id = await start_all(engine, plan)
        for unit in ("server", "client"):
            await until_it_speaks(engine, run_id, unit)
        only = {"server", "unknown"}
        await engine.stop(run_id, grace=10 * SECOND, cause=EndCause.DISMISSED, units=only)
        server = end(await watch(engine, run_id, "server"))
        assert (server.cause, server.signal) == (EndCause.DISMISSED, 15)
        with pytest.raises(errors.NotPossible):  # the other one goes on
            await engine.remove(run_id)
        await engine.stop(run_id, grace=10 * SECOND, cause=EndCause.CANCELED)
        assert end(await watch(engine, run_id, "client")).cause is EndCause.CANCELED
        assert end(await watch(engine, run_id, "server")) == server

    async def test_all_units_can_be_stopped_right_after_their_start(self, engine: Engine) -> None:
        """Whether the programs were reached by then or not."""
        run_id = await start_all(engine, self.ensemble(server=ENDLESS, benchmark=ENDLESS))
        await engine.stop(run_id, grace=SECOND, cause=EndCause.CANCELED)
        for unit in ("server", "benchmark"):
            assert end(await watch(engine, run_id, unit)).cause is EndCause.CANCELED

    async def test_a_run_of_several_units_is_kept_and_removed_as_one(self, engine: Engine) -> None:
        """Nothing of any unit is left."""
        run_id = await start_all(engine, self.ensemble(server=QUIET, benchmark=TALKING))
        for unit in ("server", "benchmark"):
            await watch(engine, run_id, unit)
        assert list(await engine.leftovers()) == [run_id]
        await engine.remove(run_id)
        await engine.remove(run_id)
        assert list(await engine.leftovers()) == []
        for unit in ("server", "benchmark"):
            assert end(await watch(engine, run_id, unit)).cause is EndCause.LOST

    async def test_a_unit_without_a_readiness_probe_is_ready_at_once(self, engine: Engine) -> None:
        """Whoever waits for it need not wait."""
        plan = self.ensemble(server=ENDLESS, client=QUIET)
        run_id = a_new_run()
        await engine.start(run_id, plan, "server")
        async with asyncio.timeout(PATIENCE_SECONDS):
            condition = await anext(engine.probe(run_id, plan, "server"))
        assert isinstance(condition, UnitReady)
        assert condition.unit == "server"
        await engine.stop(run_id, grace=SECOND, cause=EndCause.CANCELED)
        await watch(engine, run_id, "server")
