"""Do what the conductor of a run of several units says, until all of them have ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterator, Sequence

from anubis.domain.event import Event, EventKind, NewEvent, Scalar
from anubis.domain.observation import (
    Condition,
    EndCause,
    Observation,
    UnitEnded,
    UnitReady,
    UnitSilent,
    UnitUnready,
)
from anubis.domain.plan import Plan
from anubis.domain.run import Cause, RunId
from anubis.ports.clock import Clock
from anubis.ports.engine import Engine
from anubis.runtime.ensemble import Ensemble
from anubis.stages.execution.conducting import Action, Conductor, Fault, Start, Stop

LOOK_EVERY = 1.0
"""Seconds between two looks at the time, for units that are not ready or do not end."""

_FAULT, _UNIT, _READY, _CAUSE = "fault", "unit", "ready", "cause"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """How the units of a run ended, taken together."""

    ended: UnitEnded  #: by which the run is judged, unless there is a fault
    fault: Fault | None = None
    fault_end: UnitEnded | None = None  #: how the unit ended whose fault it was


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Audience:
    """Whom to tell what happens."""

    observed: Callable[[Observation], Awaitable[None]]
    noted: Callable[[NewEvent], Awaitable[None]]  #: stored when this returns
    breathe: Callable[[], Awaitable[None]]  #: called at least once a second


class Conducting:
    """Drives the units of one run. ``plan`` has its folders filled in."""

    def __init__(self, engine: Engine, run_id: RunId, plan: Plan, clock: Clock) -> None:
        self._engine = engine
        self._run_id = run_id
        self._plan = plan
        self._clock = clock
        self._conductor: Conductor | None = None
        self._halted: EndCause | None = None
        self._ends: dict[str, UnitEnded] = {}
        self._were_ready: set[str] = set()

    def halt(self, cause: EndCause) -> None:
        """Start nothing more: somebody is stopping the whole run."""
        self._halted = self._halted or cause
        if self._conductor is not None:
            self._conductor.halt(cause)

    async def run(self, events: Sequence[Event], audience: Audience) -> Verdict:
        """See all units through to their end; ``events`` are what is known of the run."""
        conductor = self._conductor = Conductor(
            self._plan,
            started=await self._engine.started(self._run_id),
            fault=noted_fault(events),
            halted=self._halted,
        )
        self._were_ready |= _noted_ready(events)
        async with Ensemble(self._engine, self._run_id, self._plan) as ensemble:
            for unit in conductor.started:
                ensemble.follow(unit)
            await self._act(conductor.begin(), ensemble, audience)
            while not conductor.is_over:
                for seen in await ensemble.news(LOOK_EVERY):
                    await self._take(seen, audience)
                    await self._act(conductor.note(seen), ensemble, audience)
                await self._act(conductor.look(self._clock.now()), ensemble, audience)
                await audience.breathe()
        return self._verdict(conductor)

    async def _take(self, seen: Observation | Condition, audience: Audience) -> None:
        if isinstance(seen, UnitReady | UnitUnready | UnitSilent):
            await self._tell_condition(seen, audience)
            return
        if isinstance(seen, UnitEnded):
            self._ends[seen.unit] = seen
        await audience.observed(seen)

    async def _tell_condition(self, seen: Condition, audience: Audience) -> None:
        """Tell when a unit becomes ready, and when one that was is so no longer."""
        if isinstance(seen, UnitReady):
            if seen.unit in self._were_ready:
                return
            self._were_ready.add(seen.unit)
            text, kind = f"{seen.unit} is ready", EventKind.NOTE
        elif isinstance(seen, UnitUnready) and seen.unit in self._were_ready:
            self._were_ready.discard(seen.unit)
            text, kind = f"{seen.unit} is not ready any more: {seen.message}", EventKind.WARNING
        else:
            return
        data: dict[str, Scalar] = {_UNIT: seen.unit, _READY: isinstance(seen, UnitReady)}
        await audience.noted(NewEvent(at=seen.at, kind=kind, message=text, data=data))

    async def _act(self, actions: Iterator[Action], ensemble: Ensemble, audience: Audience) -> None:
        for action in actions:
            match action:
                case Start():
                    await self._engine.start(self._run_id, self._plan, action.unit)
                    ensemble.follow(action.unit)
                    await self._stop_if_halted()
                case Stop():
                    await self._stop(EndCause.DISMISSED, action.units)
                case Fault():
                    await audience.noted(self._fault_event(action))

    async def _stop_if_halted(self) -> None:
        """For a unit that was started in the moment in which somebody stopped all others."""
        if self._halted is not None:
            await self._stop(self._halted, None)

    async def _stop(self, cause: EndCause, units: frozenset[str] | None) -> None:
        grace = self._plan.limits.grace
        await self._engine.stop(self._run_id, grace=grace, cause=cause, units=units)

    def _fault_event(self, fault: Fault) -> NewEvent:
        data = {_FAULT: fault.reason, _UNIT: fault.unit, _CAUSE: fault.cause.value}
        text = f"{fault.reason}; the run is being stopped"
        return NewEvent(at=self._clock.now(), kind=EventKind.WARNING, message=text, data=data)

    def _verdict(self, conductor: Conductor) -> Verdict:
        ended = conductor.decisive(self._clock.now())
        fault = conductor.fault
        if fault is None:
            return Verdict(ended=ended)
        return Verdict(ended=ended, fault=fault, fault_end=self._ends.get(fault.unit))


def noted_fault(events: Sequence[Event]) -> Fault | None:
    """The fault that an earlier life of the runtime noted, if there was one."""
    for event in events:
        reason, unit = event.data.get(_FAULT), event.data.get(_UNIT)
        if event.kind is EventKind.WARNING and isinstance(reason, str) and isinstance(unit, str):
            return Fault(unit=unit, reason=reason, cause=Cause(str(event.data[_CAUSE])))
    return None


def _noted_ready(events: Sequence[Event]) -> set[str]:
    """The units that were ready when an earlier life of the runtime last said so."""
    said = {event.data.get(_UNIT): event.data.get(_READY) for event in events}
    return {unit for unit, is_ready in said.items() if is_ready and isinstance(unit, str)}
