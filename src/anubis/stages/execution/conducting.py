"""Which unit starts when, and what the end of one means for the others.

Pure: it is told what was seen, and says what to do. Whoever asks does it, and tells what it has
seen since; after a crash, all that was seen is told again from the beginning, and leads to the same
place. Only a fault must be remembered by others, for the units it stopped no longer show it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from datetime import datetime

from anubis.domain.observation import (
    Condition,
    EndCause,
    Observation,
    UnitEnded,
    UnitReady,
    UnitSilent,
    UnitStarted,
    UnitUnready,
)
from anubis.domain.plan import Plan, Unit
from anubis.domain.run import Cause
from anubis.stages.execution.wording import cause_of, describe, how_it_ended


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """Start this unit."""

    unit: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    """Ask these units to end, for the run has no more use for them."""

    units: frozenset[str]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """Why a run fails that its deciding unit would not have failed."""

    unit: str  #: whose fault it is; its last lines are what a person wants to see
    reason: str
    cause: Cause


Action = Start | Stop | Fault
"""A fault is to be remembered before anything that follows is done."""


class Conductor:
    """One run of several units. ``started``, ``fault`` and ``halted`` are what is known of it."""

    def __init__(
        self,
        plan: Plan,
        *,
        started: Iterable[str] = (),
        fault: Fault | None = None,
        halted: EndCause | None = None,
    ) -> None:
        self._plan = plan
        self._started = set(started)
        self._since: dict[str, datetime] = {}  #: when each began, as far as it was seen
        self._ready: set[str] = set()
        self._unready: dict[str, str] = {}  #: what each said last
        self._ended: dict[str, UnitEnded] = {}
        self._dismissed: set[str] = set()
        self._known_before = frozenset(self._started)  #: from an earlier life of whoever asks
        self._looks_since: datetime | None = None
        self.fault = fault
        self.halted = halted  #: set when somebody stopped the whole run

    @property
    def started(self) -> frozenset[str]:
        """The units that must be observed."""
        return frozenset(self._started)

    @property
    def is_over(self) -> bool:
        """Whether nothing will ever start or end any more: only who runs can become ready."""
        has_begun = bool(self._started) or self._will_not_go_on
        return has_begun and self._started <= self._ended.keys()

    @property
    def _will_not_go_on(self) -> bool:
        return self._has_decided or self.fault is not None or self.halted is not None

    @property
    def _has_decided(self) -> bool:
        return self._plan.deciding in self._ended

    def begin(self) -> Iterator[Action]:
        """What to do first."""
        yield from self._start_what_can()
        yield from self._dismiss()

    def halt(self, cause: EndCause) -> None:
        """The whole run is being stopped, by somebody else: nothing more is started."""
        self.halted = self.halted or cause

    def note(self, seen: Observation | Condition) -> Iterator[Action]:
        """What to do now that this was seen."""
        match seen:
            case UnitStarted():
                self._since[seen.unit] = seen.at
            case UnitReady():
                self._ready.add(seen.unit)
                yield from self._start_what_can()
            case UnitUnready():
                self._unready[seen.unit] = seen.message
            case UnitSilent():
                text = f"{seen.unit} no longer answers its liveness probe: {seen.message}"
                yield from self._fail(seen.unit, text, Cause.NOT_ALIVE)
            case UnitEnded():
                yield from self._note_end(seen)
            case _:
                pass

    def look(self, now: datetime) -> Iterator[Action]:
        """What to do because time has passed."""
        self._looks_since = self._looks_since or now
        yield from self._give_up_waiting(now)
        yield from self._dismiss(now)

    def _note_end(self, ended: UnitEnded) -> Iterator[Action]:
        self._ended[ended.unit] = ended
        if ended.cause is EndCause.CANCELED:  # only ever all at once; who asked for it may be dead
            self.halt(ended.cause)
        if self._is_fault(ended):
            yield from self._fail(ended.unit, self._reason(ended), cause_of(ended))
        yield from self._dismiss()

    def _is_fault(self, ended: UnitEnded) -> bool:
        """Whether the end of a unit is the end of the run, though it does not decide."""
        if ended.unit == self._plan.deciding or self._will_not_go_on:
            return False
        if ended.cause is EndCause.DISMISSED:
            return False
        unit = self._plan.unit(ended.unit)
        return unit.is_service or ended.cause is not EndCause.EXITED or ended.exit_code != 0

    def _reason(self, ended: UnitEnded) -> str:
        deciding = self._plan.deciding
        when = f"before {deciding} did" if deciding in self._started else f"before {deciding} began"
        return f"{how_it_ended(ended, self._plan)}, {when}"

    def _fail(self, unit: str, reason: str, cause: Cause) -> Iterator[Action]:
        if self._will_not_go_on:
            return
        self.fault = Fault(unit=unit, reason=reason, cause=cause)
        yield self.fault
        yield from self._dismiss()

    def _start_what_can(self) -> Iterator[Action]:
        if self._will_not_go_on:
            return
        for unit in self._plan.units:
            if unit.name not in self._started and self._ready.issuperset(unit.after):
                self._started.add(unit.name)
                yield Start(unit=unit.name)

    def _give_up_waiting(self, now: datetime) -> Iterator[Action]:
        """Fail on a unit that others wait for and that is not ready in time."""
        limit = self._plan.limits.readiness
        for name, began in self._since.items():
            since = self._asked_since(name, began)
            is_awaited = name not in self._ready and name not in self._ended
            if is_awaited and now >= since + limit and self._holds_up_others(name):
                last = self._unready.get(name, "it was not asked yet")
                text = f"{name} was not ready within limits.readiness = {describe(limit)}: {last}"
                yield from self._fail(name, text, Cause.NOT_READY)

    def _asked_since(self, name: str, began: datetime) -> datetime:
        """Since when somebody has asked whether it is ready: not while we were away."""
        if name in self._known_before and self._looks_since is not None:
            return max(began, self._looks_since)
        return began

    def _holds_up_others(self, name: str) -> bool:
        return any(
            name in unit.after and unit.name not in self._started for unit in self._plan.units
        )

    def _dismiss(self, now: datetime | None = None) -> Iterator[Action]:
        """Send home whom nobody needs any more."""
        if self.fault is None and not self._has_decided:
            return
        over = {unit.name for unit in self._plan.units if self._is_useless(unit, now)}
        over &= self._started - self._ended.keys() - self._dismissed
        if over:
            self._dismissed |= over
            yield Stop(units=frozenset(over))

    def _is_useless(self, unit: Unit, now: datetime | None) -> bool:
        """After a fault, nobody is needed; else services, and at last those that dawdle."""
        if self.fault is not None or unit.is_service:
            return True
        decided = self._ended[self._plan.deciding]
        return now is not None and now >= decided.at + self._plan.limits.grace

    def decisive(self, now: datetime) -> UnitEnded:
        """The end by which the run is judged when there is no fault. Asked when all is over."""
        deciding = self._plan.deciding
        ended = self._ended.get(deciding)
        if ended is None:
            cause = self.halted or EndCause.LOST
            message = "" if self.halted else "its fellow units ended before it was started"
            return UnitEnded(unit=deciding, at=now, cause=cause, message=message)
        if ended.cause is not EndCause.EXITED or ended.exit_code == 0:
            return ended
        if self.halted is not None and self._have_others_ended_by(self.halted):
            # It missed those whom we stopped, before our own request reached it.
            return dataclasses.replace(ended, cause=self.halted)
        return self._culprit() or ended

    def _have_others_ended_by(self, cause: EndCause) -> bool:
        return any(ended.cause is cause for ended in self._ended.values())

    def _culprit(self) -> UnitEnded | None:
        """The service whose own end explains why the deciding unit failed, if one does."""
        causes = (EndCause.EXITED, EndCause.OUT_OF_MEMORY)
        for unit in self._plan.units:
            other = self._ended.get(unit.name)
            if unit.is_service and other is not None and other.cause in causes:
                return other
        return None
