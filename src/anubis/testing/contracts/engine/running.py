"""A plan of one unit: it runs, it is run once, and it is stopped and forgotten on request."""

from __future__ import annotations

import asyncio

import pytest

from anubis.adapters.engine.fake import Script
from anubis.domain import errors
from anubis.domain.observation import EmittedChunk, EndCause, Stream, UnitStarted
from anubis.domain.plan import Plan
from anubis.ports.engine import Engine
from anubis.testing.contracts.engine.given import (
    COMPLAINING,
    DEAF,
    EMITTING,
    ENDLESS,
    MISSING,
    QUIET,
    SECOND,
    TALKING,
    a_new_run,
    end,
    output,
    run,
    until_it_speaks,
    watch,
)


class RunningContract:
    """A program runs, and all of it is seen."""

    def plan(self, program: Script) -> Plan:
        """The plan with which this engine runs ``program``."""
        raise NotImplementedError

    async def test_a_run_begins_with_its_start_and_ends_with_its_end(self, engine: Engine) -> None:
        """What lies between may differ, the frame does not."""
        seen = await run(engine, self.plan(QUIET))
        assert isinstance(seen[0], UnitStarted)
        assert end(seen).cause is EndCause.EXITED
        assert end(seen).exit_code == 0
        assert end(seen).signal is None

    async def test_the_name_of_the_unit_is_on_everything(self, engine: Engine) -> None:
        """Plans will have several units; nobody shall have to guess."""
        seen = await run(engine, self.plan(TALKING))
        assert {observation.unit for observation in seen} == {"benchmark"}

    async def test_output_is_complete_and_times_do_not_run_backwards(self, engine: Engine) -> None:
        """Per stream, the bytes in order."""
        seen = await run(engine, self.plan(TALKING))
        assert output(seen) == b"one\ntwo\n"
        assert output(seen, Stream.STDERR) == b""
        assert sorted(o.at for o in seen) == [o.at for o in seen]

    async def test_a_failure_keeps_its_exit_code_and_its_complaint(self, engine: Engine) -> None:
        """Exit 3 is exit 3."""
        seen = await run(engine, self.plan(COMPLAINING))
        assert end(seen).exit_code == 3
        assert output(seen, Stream.STDERR) == b"oh no\n"

    async def test_emitted_metrics_are_kept_apart_from_output(self, engine: Engine) -> None:
        """The emit pipe is a stream of its own."""
        seen = await run(engine, self.plan(EMITTING))
        emitted = b"".join(o.data for o in seen if isinstance(o, EmittedChunk))
        assert emitted == b'{"loss": 1.5}\n'
        assert output(seen) == b""

    async def test_a_program_that_cannot_start_says_why(self, engine: Engine) -> None:
        """NOT_STARTED, with a sentence, and without a start."""
        seen = await run(engine, self.plan(MISSING))
        assert end(seen).cause is EndCause.NOT_STARTED
        assert "found" in end(seen).message
        assert end(seen).exit_code is None
        assert not any(isinstance(observation, UnitStarted) for observation in seen)


class RepeatingContract:
    """Asking twice changes nothing."""

    def plan(self, program: Script) -> Plan:
        """The plan with which this engine runs ``program``."""
        raise NotImplementedError

    async def test_starting_twice_runs_once(self, engine: Engine) -> None:
        """While it goes on, and after it has ended."""
        run_id = a_new_run()
        plan = self.plan(TALKING)
        await engine.start(run_id, plan)
        await engine.start(run_id, plan)
        first = await watch(engine, run_id)
        await engine.start(run_id, plan)
        assert output(first) == b"one\ntwo\n"
        assert await watch(engine, run_id) == first

    async def test_starting_at_the_same_moment_runs_once(self, engine: Engine) -> None:
        """Two workers may believe they are the one."""
        run_id = a_new_run()
        await asyncio.gather(*(engine.start(run_id, self.plan(TALKING)) for _ in range(4)))
        assert output(await watch(engine, run_id)) == b"one\ntwo\n"

    async def test_observers_at_different_times_see_the_same(self, engine: Engine) -> None:
        """One along with the run, one beside it, one afterwards."""
        run_id = a_new_run()
        await engine.start(run_id, self.plan(COMPLAINING))
        first, second = await asyncio.gather(watch(engine, run_id), watch(engine, run_id))
        assert first == second == await watch(engine, run_id)

    async def test_an_observer_that_leaves_changes_nothing(self, engine: Engine) -> None:
        """The run goes on."""
        run_id = a_new_run()
        await engine.start(run_id, self.plan(ENDLESS))
        await until_it_speaks(engine, run_id)
        await engine.stop(run_id, grace=10 * SECOND, cause=EndCause.CANCELED)
        assert output(await watch(engine, run_id)) == b"here\n"

    async def test_a_run_that_was_never_started_is_lost_at_once(self, engine: Engine) -> None:
        """Nobody waits for it."""
        seen = await watch(engine, a_new_run())
        assert len(seen) == 1
        assert end(seen).cause is EndCause.LOST
        assert end(seen).message


class StoppingContract:
    """A run ends when it is asked to, and is then forgotten on request."""

    def plan(self, program: Script) -> Plan:
        """The plan with which this engine runs ``program``."""
        raise NotImplementedError

    @pytest.mark.parametrize("cause", [EndCause.CANCELED, EndCause.TIMED_OUT])
    async def test_a_stopped_run_tells_the_cause_it_was_given(
        self, engine: Engine, cause: EndCause
    ) -> None:
        """And the signal that ended it."""
        run_id = a_new_run()
        await engine.start(run_id, self.plan(ENDLESS))
        await until_it_speaks(engine, run_id)
        await engine.stop(run_id, grace=10 * SECOND, cause=cause)
        await engine.stop(run_id, grace=10 * SECOND, cause=cause)
        ended = end(await watch(engine, run_id))
        assert (ended.cause, ended.exit_code, ended.signal) == (cause, None, 15)

    async def test_a_program_deaf_to_sigterm_is_killed(self, engine: Engine) -> None:
        """After the grace period."""
        run_id = a_new_run()
        await engine.start(run_id, self.plan(DEAF))
        await until_it_speaks(engine, run_id)
        await engine.stop(run_id, grace=SECOND / 10, cause=EndCause.CANCELED)
        ended = end(await watch(engine, run_id))
        assert (ended.cause, ended.signal) == (EndCause.CANCELED, 9)

    async def test_a_run_can_be_stopped_right_after_its_start(self, engine: Engine) -> None:
        """Whether the program was reached by then or not."""
        run_id = a_new_run()
        await engine.start(run_id, self.plan(ENDLESS))
        await engine.stop(run_id, grace=SECOND, cause=EndCause.CANCELED)
        assert end(await watch(engine, run_id)).cause is EndCause.CANCELED

    async def test_stopping_an_ended_or_unknown_run_does_nothing(self, engine: Engine) -> None:
        """Its end stays what it was."""
        run_id = a_new_run()
        await engine.start(run_id, self.plan(QUIET))
        await watch(engine, run_id)
        await engine.stop(run_id, grace=SECOND, cause=EndCause.CANCELED)
        await engine.stop(a_new_run(), grace=SECOND, cause=EndCause.CANCELED)
        assert end(await watch(engine, run_id)).cause is EndCause.EXITED

    async def test_runs_are_kept_until_they_are_removed(self, engine: Engine) -> None:
        """Removing twice is as good as once."""
        run_id = a_new_run()
        await engine.start(run_id, self.plan(QUIET))
        await watch(engine, run_id)
        assert list(await engine.leftovers()) == [run_id]
        await engine.remove(run_id)
        await engine.remove(run_id)
        assert list(await engine.leftovers()) == []
        assert end(await watch(engine, run_id)).cause is EndCause.LOST

    async def test_a_run_that_goes_on_cannot_be_removed(self, engine: Engine) -> None:
        """It must be stopped first."""
        run_id = a_new_run()
        await engine.start(run_id, self.plan(ENDLESS))
        await until_it_speaks(engine, run_id)
        with pytest.raises(errors.NotPossible):
            await engine.remove(run_id)
        await engine.stop(run_id, grace=SECOND, cause=EndCause.CANCELED)
        await watch(engine, run_id)

    async def test_the_environment_has_a_fingerprint(self, engine: Engine) -> None:
        """Two JSON texts; the large one does not change between two runs."""
        plan = self.plan(QUIET)
        first, second = await engine.fingerprint(plan), await engine.fingerprint(plan)
        assert first.machine.startswith("{")
        assert first.moment.startswith("{")
        assert first.machine == second.machine
