"""Which unit starts when, and what the end of one means for the others."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest

from anubis.domain.observation import (
    EndCause,
    UnitEnded,
    UnitReady,
    UnitSilent,
    UnitStarted,
    UnitUnready,
)
from anubis.domain.plan import Limits, Plan, Unit
from anubis.domain.run import Cause
from anubis.stages.execution.conducting import Action, Conductor, Fault, Start, Stop
from anubis.testing.clock import NOON

SECOND = timedelta(seconds=1)


def unit(name: str, **fields: object) -> Unit:
    return Unit(name=name, command=("true",), environment={}, **fields)  # type: ignore[arg-type] # any field


def inference(**limits: timedelta) -> Plan:
    return Plan(
        units=(unit("client", after=("server",)), unit("server", is_service=True)),
        deciding="client",
        limits=Limits(**limits),  # type: ignore[arg-type] # durations only
    )


def peers() -> Plan:
    units = (unit("scheduler"), unit("worker-0"), unit("worker-1"))
    return Plan(units=units, deciding="worker-0", limits=Limits())


def ended(
    name: str,
    code: int | None = 0,
    *,
    cause: EndCause = EndCause.EXITED,
    at: datetime = NOON,
    message: str = "",
) -> UnitEnded:
    return UnitEnded(unit=name, at=at, cause=cause, exit_code=code, message=message)


def done(actions: Iterable[Action]) -> list[Action]:
    return list(actions)


def serving(plan: Plan | None = None) -> Conductor:
    """A conductor whose server is ready and whose client runs."""
    conductor = Conductor(plan or inference())
    assert done(conductor.begin()) == [Start(unit="server")]
    assert done(conductor.note(UnitStarted(unit="server", at=NOON))) == []
    assert done(conductor.note(UnitReady(unit="server", at=NOON))) == [Start(unit="client")]
    assert done(conductor.note(UnitStarted(unit="client", at=NOON))) == []
    return conductor


def test_a_unit_starts_when_those_before_it_are_ready_and_not_when_they_run() -> None:
    conductor = Conductor(inference())
    assert done(conductor.begin()) == [Start(unit="server")]
    assert done(conductor.note(UnitStarted(unit="server", at=NOON))) == []
    assert done(conductor.note(UnitUnready(unit="server", at=NOON, message="refused"))) == []
    assert done(conductor.note(UnitReady(unit="server", at=NOON))) == [Start(unit="client")]
    assert done(conductor.note(UnitReady(unit="server", at=NOON))) == []


def test_a_service_is_stopped_when_the_deciding_unit_has_ended() -> None:
    conductor = serving()
    assert done(conductor.note(ended("client"))) == [Stop(units=frozenset({"server"}))]
    assert not conductor.is_over
    assert done(conductor.note(ended("server", None, cause=EndCause.DISMISSED))) == []
    assert conductor.is_over
    assert conductor.fault is None
    assert conductor.decisive(NOON) == ended("client")


@pytest.mark.parametrize("code", [0, 1])
def test_a_service_that_ends_too_early_is_the_runs_fault_whatever_its_code(code: int) -> None:
    conductor = serving()
    fault, stop = done(conductor.note(ended("server", code)))
    assert isinstance(fault, Fault)
    assert fault.unit == "server"
    assert fault.reason == f"server exited with code {code}, before client did"
    assert fault.cause is Cause.EXITED
    assert stop == Stop(units=frozenset({"client"}))
    done(conductor.note(ended("client", None, cause=EndCause.DISMISSED)))
    assert conductor.is_over


def test_a_service_that_ends_before_anybody_could_use_it_says_so() -> None:
    conductor = Conductor(inference())
    done(conductor.begin())
    (fault,) = done(conductor.note(ended("server", 3)))
    assert isinstance(fault, Fault)
    assert fault.reason == "server exited with code 3, before client began"
    assert conductor.is_over


def test_a_service_that_is_never_ready_fails_the_run_with_what_it_said_last() -> None:
    conductor = Conductor(inference(readiness=60 * SECOND))
    done(conductor.begin())
    done(conductor.note(UnitStarted(unit="server", at=NOON)))
    done(conductor.note(UnitUnready(unit="server", at=NOON, message="connection refused")))
    assert done(conductor.look(NOON + 59 * SECOND)) == []
    fault, stop = done(conductor.look(NOON + 60 * SECOND))
    assert isinstance(fault, Fault)
    assert fault.reason == (
        "server was not ready within limits.readiness = 60 s: connection refused"
    )
    assert stop == Stop(units=frozenset({"server"}))


def test_a_service_that_was_ready_once_may_be_busy_later() -> None:
    conductor = serving(inference(readiness=60 * SECOND))
    done(conductor.note(UnitUnready(unit="server", at=NOON, message="busy")))
    assert done(conductor.look(NOON + 3600 * SECOND)) == []


def test_a_service_that_fails_its_liveness_probe_fails_the_run() -> None:
    conductor = serving()
    fault, stop = done(conductor.note(UnitSilent(unit="server", at=NOON, message="no answer")))
    assert isinstance(fault, Fault)
    assert fault.reason == "server no longer answers its liveness probe: no answer"
    assert fault.cause is Cause.NOT_ALIVE
    assert stop == Stop(units=frozenset({"client", "server"}))


def test_a_client_that_failed_because_its_server_died_blames_the_server() -> None:
    conductor = serving()
    done(conductor.note(ended("client", 1)))
    done(conductor.note(ended("server", 139)))
    assert conductor.decisive(NOON).unit == "server"


def test_a_client_that_succeeded_does_so_whatever_its_server_did_then() -> None:
    conductor = serving()
    done(conductor.note(ended("client", 0)))
    done(conductor.note(ended("server", 1)))
    assert conductor.decisive(NOON).unit == "client"


def test_peers_may_end_by_themselves_and_get_the_grace_to_do_so() -> None:
    conductor = Conductor(peers())
    names = ["scheduler", "worker-0", "worker-1"]
    assert done(conductor.begin()) == [Start(unit=name) for name in names]
    assert done(conductor.note(ended("worker-1"))) == []
    assert done(conductor.note(ended("worker-0"))) == []
    assert done(conductor.look(NOON + 9 * SECOND)) == []
    assert done(conductor.look(NOON + 10 * SECOND)) == [Stop(units=frozenset({"scheduler"}))]
    assert done(conductor.look(NOON + 11 * SECOND)) == []


def test_a_peer_that_fails_takes_the_run_with_it() -> None:
    conductor = Conductor(peers())
    done(conductor.begin())
    fault, stop = done(conductor.note(ended("worker-1", 1)))
    assert isinstance(fault, Fault)
    assert fault.reason == "worker-1 exited with code 1, before worker-0 did"
    assert stop == Stop(units=frozenset({"scheduler", "worker-0"}))


def test_a_unit_that_cannot_start_is_a_fault_with_its_own_words() -> None:
    conductor = Conductor(inference())
    done(conductor.begin())
    seen = ended("server", None, cause=EndCause.NOT_STARTED, message="no such program")
    (fault,) = done(conductor.note(seen))
    assert isinstance(fault, Fault)
    assert "could not be started: no such program" in fault.reason


def test_nothing_starts_once_the_run_is_being_stopped() -> None:
    conductor = Conductor(inference())
    done(conductor.begin())
    conductor.halt(EndCause.CANCELED)
    assert done(conductor.note(UnitReady(unit="server", at=NOON))) == []
    done(conductor.note(ended("server", None, cause=EndCause.CANCELED)))
    assert conductor.is_over
    assert conductor.fault is None
    assert conductor.decisive(NOON).cause is EndCause.CANCELED


def test_after_a_crash_what_was_started_is_known_and_the_same_end_is_reached() -> None:
    conductor = Conductor(inference(), started=("server", "client"))
    assert done(conductor.begin()) == []
    done(conductor.note(ended("server", None, cause=EndCause.DISMISSED)))
    assert conductor.fault is None
    done(conductor.note(ended("client", 0)))
    assert conductor.is_over
    assert conductor.decisive(NOON).exit_code == 0


def test_after_a_crash_a_fault_is_still_the_fault_and_its_stopping_goes_on() -> None:
    fault = Fault(unit="server", reason="server was not ready", cause=Cause.NOT_READY)
    conductor = Conductor(inference(), started=("server",), fault=fault)
    assert done(conductor.begin()) == [Stop(units=frozenset({"server"}))]
    done(conductor.note(ended("server", None, cause=EndCause.DISMISSED)))
    assert conductor.is_over
    assert conductor.fault == fault


def test_a_fault_forgotten_by_everybody_is_no_success() -> None:
    conductor = Conductor(inference(), started=("server",))
    done(conductor.begin())
    done(conductor.note(ended("server", None, cause=EndCause.DISMISSED)))
    assert conductor.is_over
    assert conductor.decisive(NOON).cause is EndCause.LOST


def test_after_a_crash_a_unit_that_was_canceled_is_no_fault() -> None:
    """Who asked for it may have died before all units had ended."""
    conductor = Conductor(inference(), started=("server", "client"))
    done(conductor.begin())
    assert done(conductor.note(ended("server", None, cause=EndCause.CANCELED))) == []
    done(conductor.note(ended("client", None, cause=EndCause.CANCELED)))
    assert conductor.is_over
    assert conductor.fault is None
    assert conductor.decisive(NOON).cause is EndCause.CANCELED


def test_after_a_crash_nothing_is_started_beside_a_unit_that_was_canceled() -> None:
    conductor = Conductor(inference(), started=("server",))
    done(conductor.begin())
    done(conductor.note(ended("server", None, cause=EndCause.CANCELED)))
    assert done(conductor.note(UnitReady(unit="server", at=NOON))) == []
    assert conductor.is_over
    assert conductor.decisive(NOON).cause is EndCause.CANCELED


def test_a_service_that_nobody_could_ask_for_a_while_is_asked_before_it_is_given_up() -> None:
    """The runtime was away for longer than the limit."""
    conductor = Conductor(inference(readiness=60 * SECOND), started=("server",))
    done(conductor.begin())
    done(conductor.note(UnitStarted(unit="server", at=NOON)))
    assert done(conductor.look(NOON + 3600 * SECOND)) == []
    assert done(conductor.look(NOON + 3659 * SECOND)) == []
    fault, _ = done(conductor.look(NOON + 3660 * SECOND))
    assert isinstance(fault, Fault)


def test_a_client_that_fails_because_its_server_was_canceled_is_canceled_too() -> None:
    """Its own request to stop may reach it later than the end of its connections."""
    conductor = serving()
    conductor.halt(EndCause.CANCELED)
    done(conductor.note(ended("client", 1)))
    done(conductor.note(ended("server", None, cause=EndCause.CANCELED)))
    assert conductor.is_over
    assert conductor.decisive(NOON).cause is EndCause.CANCELED
    assert conductor.decisive(NOON).unit == "client"


def test_a_client_that_succeeded_did_so_though_its_server_was_canceled() -> None:
    conductor = serving()
    done(conductor.note(ended("client", 0)))
    conductor.halt(EndCause.CANCELED)
    done(conductor.note(ended("server", None, cause=EndCause.CANCELED)))
    assert conductor.decisive(NOON).cause is EndCause.EXITED
