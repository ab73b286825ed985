"""Carry one leased run from where it stands to its end.

A run may be taken up in any active state, by this process or by one that comes after a crash:
the engine never starts a run twice and replays all it has seen, and collection starts anew, so
carrying on is the same as carrying from the beginning.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from anubis.domain import plan as plans
from anubis.domain.errors import (
    AnubisError,
    EngineUnavailable,
    NotPossible,
    StartFailed,
    TemporaryError,
)
from anubis.domain.event import Event, EventKind, NewEvent
from anubis.domain.observation import (
    EndCause,
    Observation,
    UnitEnded,
    UnitStarted,
    UnitWaiting,
)
from anubis.domain.plan import Plan
from anubis.domain.run import BEFORE_START, Cause, Outcome, Run, RunState, WorkerId
from anubis.ports.clock import Clock
from anubis.ports.engine import Capabilities, Engine
from anubis.ports.log_store import LogStore
from anubis.ports.run_store import Move, RunStore, Step
from anubis.ports.series_store import SeriesStore
from anubis.runtime import allotting, bringing, fetching
from anubis.runtime.bringing import Bringing, NothingBrought
from anubis.runtime.conducting import Audience, Conducting, Verdict
from anubis.stages.collection.collecting import Collected, Collector
from anubis.stages.execution import outcomes

FLUSH_EVERY = 1.0
"""Seconds: how often readers see new lines and metric values while a run goes on."""

STOP_SLACK = timedelta(minutes=1)
"""The engine stops a run at ``limits.running`` by itself. Only when it has not done so a minute
after the grace period do we call the engine lost."""

LARGE_OUTPUT = 1 << 20
"""Storing less than a megabyte takes milliseconds: FINISHING and the end are then one step."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Workshop:
    """All that is needed to carry runs."""

    worker: WorkerId
    store: RunStore
    engines: Mapping[str, Engine]
    logs: LogStore
    series: SeriesStore
    clock: Clock
    bringing: Bringing = dataclasses.field(default_factory=NothingBrought)


_CANCELED = Outcome(
    state=RunState.CANCELED, reason="canceled before it began", cause=Cause.CANCELED
)


class Carrier:
    """Carries one run. Its ``run`` is always the newest stored state of it."""

    def __init__(self, run: Run, workshop: Workshop, gpus: Sequence[int] = ()) -> None:
        self.run = run
        self._shop = workshop
        self._gpus = gpus  #: which it may use, if it has not started yet
        self._plan: Plan | None = None
        self._late_since: float | None = None  #: when a run past its deadline was asked to stop
        self._fetch: fetching.Fetch | None = None  #: while something is being brought
        self._conducting: Conducting | None = None  #: while several units run

    async def carry(self) -> None:
        """Bring the run to its end. Raises LeaseLost when another worker took it over."""
        try:
            await self._carry()
        except EngineUnavailable as error:  # it is tried again; who looks meanwhile shall know why
            await self._note_trouble(str(error))
            raise

    async def _carry(self) -> None:
        plan = await self._load()
        if self.run.state in BEFORE_START:
            if self.run.cancel_requested_at is not None:
                await self.end(_CANCELED)
                return
            if self._must_bring(plan) and (outcome := await self._bring(plan)) is not None:
                await self.end(outcome)
                return
            await self._prepare(plan)
        elif await self._is_vain():
            await self.end(_CANCELED)
            return
        placed = self._placed(plan)
        if self.run.state is RunState.STARTING:
            placed = await self._equipped(placed)
        await self._follow(placed)

    async def _is_vain(self) -> bool:
        """Whether a run is wanted no more of which nothing was started: its engine was away, and
        nobody shall wait for it to come back only to hear that.
        """
        is_unwanted = self.run.cancel_requested_at is not None
        is_starting = self.run.state is RunState.STARTING
        return is_unwanted and is_starting and not await self._engine.started(self.run.id)

    async def enqueue(self) -> None:
        """Bring the run to QUEUED and give it back: there is no room for it now."""
        plan = await self._load()
        _ = self._engine  # a run whose engine is not here need not wait to hear so
        if self._must_bring(plan):  # when it is its turn
            moves = [self._waiting(self._move(RunState.QUEUED, self._shop.clock.now(), plan))]
        else:
            moves = self._moves_to(RunState.QUEUED, plan)
        await self._apply(Step(run_id=self.run.id, moves=moves, release=True))

    async def stop(self) -> None:
        """Stop the run on request, or what is being brought for it. Safe to repeat."""
        if self._fetch is not None:
            self._fetch.cancel()
        elif self.run.state not in BEFORE_START:
            await self._stop(EndCause.CANCELED)

    def is_overdue(self, run: Run) -> bool:
        """Whether the run must be ended from outside now, as far as time goes.

        A program that runs is first asked to stop, and ends in the ordinary way, with all its
        output: the clock may have been set, or the machine have slept.
        """
        if run.state.is_terminal or run.deadline > self._shop.clock.now():
            return False
        if run.state is not RunState.RUNNING:
            return True
        return self._late_since is not None and self._shop.clock.monotonic() > (
            self._late_since + STOP_SLACK.total_seconds()
        )

    async def stop_late(self) -> None:
        """Ask the engine to stop a run that has lasted too long. Safe to repeat."""
        if self._late_since is None:
            plan = await self._load()
            self._late_since = self._shop.clock.monotonic() + plan.limits.grace.total_seconds()
        await self._stop(EndCause.TIMED_OUT)

    async def give_up(self, reason: str) -> None:
        """End a run that we cannot carry on with, so that it does not hang."""
        await self._abort(Outcome(state=RunState.ERROR, reason=reason))

    async def end(self, outcome: Outcome) -> None:
        """Store the terminal state, whatever the present one is, and forget the engine's part."""
        await self._end(Step(run_id=self.run.id, outcome=outcome))

    async def expire(self) -> None:
        """End a run whose state lasted too long."""
        limit = self.run.deadline - self.run.state_since
        trouble = _last_trouble(await self._shop.store.events(self.run.id))
        await self._abort(outcomes.overdue(self.run.state, limit, trouble))

    async def _note_trouble(self, text: str, kind: EventKind = EventKind.WARNING) -> None:
        """Tell what keeps the run from going on, once."""
        if _last_trouble(await self._shop.store.events(self.run.id)) != text:
            now = self._shop.clock.now()
            data = {_TROUBLE: text}
            note = NewEvent(at=now, kind=kind, message=text, data=data)
            await self._apply(Step(run_id=self.run.id, notes=[note]))

    async def _stop(self, cause: EndCause) -> None:
        if self._conducting is not None:
            self._conducting.halt(cause)
        plan = await self._load()
        await self._engine.stop(self.run.id, grace=plan.limits.grace, cause=cause)

    @property
    def _engine(self) -> Engine:
        try:
            return self._shop.engines[self.run.engine]
        except KeyError:
            known = ", ".join(sorted(self._shop.engines))
            text = f"there is no engine {self.run.engine!r} here; expected one of: {known}"
            raise StartFailed(text) from None

    async def _abort(self, outcome: Outcome) -> None:
        """Stop what may be running, then end, from whatever state is stored by now."""
        self.run = await self._shop.store.get(self.run.id)
        if self.run.state.is_terminal:
            return
        if self.run.state not in BEFORE_START and self.run.engine in self._shop.engines:
            with contextlib.suppress(AnubisError):  # it must end, also if the engine is away
                await self.stop()
        await self.end(outcome)

    async def _load(self) -> Plan:
        if self._plan is None:
            self._plan = plans.from_json(await self._shop.store.plan(self.run.id))
        return self._plan

    def _must_bring(self, plan: Plan) -> bool:
        """Whether anything may have to be fetched before the run can start."""
        able = self._engine.capabilities
        return not able.brings and (bringing.is_needed(plan) or able.needs_image)

    def _placed(self, plan: Plan) -> Plan:
        """The plan with what was brought for it, unless the engine brings it itself."""
        if self._engine.capabilities.brings:
            return plan
        return self._shop.bringing.placed(self.run.id, plan)

    async def _bring(self, plan: Plan) -> Outcome | None:
        """Bring what the run needs, in FETCHING; how it ends, if that is not possible."""
        fetch = fetching.Fetch(self.run.id, plan, self._shop.bringing, self._engine)
        reporter = fetching.Reporters(self._shop.clock, plan)
        if self.run.state is not RunState.FETCHING:
            move = self._move(RunState.FETCHING, self._shop.clock.now(), plan)
            move = dataclasses.replace(move, message="brings what it needs")
            await self._apply(Step(run_id=self.run.id, moves=[move]))
            if begun := reporter.begun():
                await self._apply(Step(run_id=self.run.id, notes=begun))
        self._fetch = fetch
        try:
            async with contextlib.aclosing(fetch.run(reporter)) as news:
                async for notes in news:
                    await self._apply(Step(run_id=self.run.id, notes=notes))
        finally:
            self._fetch = None
        return fetch.outcome

    async def _prepare(self, plan: Plan) -> None:
        fingerprint = await self._engine.fingerprint(plan)
        moves = self._moves_to(RunState.STARTING, plan)
        notes = [allotting.note(self._gpus, self._shop.clock.now())] if self._gpus else []
        step = Step(run_id=self.run.id, moves=moves, notes=notes, fingerprint=fingerprint)
        await self._apply(step)

    async def _equipped(self, plan: Plan) -> Plan:
        """The plan with the GPUs that the run was given when it became STARTING."""
        if not self.run.demand.gpus:
            return plan
        gpus = allotting.noted(await self._shop.store.events(self.run.id))
        return allotting.equipped(plan, gpus) if gpus else plan

    def _moves_to(self, target: RunState, plan: Plan) -> list[Move]:
        """The steps from the present state to ``target``, all at this moment."""
        now = self._shop.clock.now()
        road = [RunState.SUBMITTED, RunState.FETCHING, RunState.QUEUED, RunState.STARTING]
        ahead = road[road.index(self.run.state) + 1 : road.index(target) + 1]
        moves = [self._move(state, now, plan) for state in ahead]
        if moves and target is RunState.QUEUED:
            moves[-1] = self._waiting(moves[-1])
        return moves

    def _move(self, to: RunState, at: datetime, plan: Plan) -> Move:
        able = self._engine.capabilities
        is_later = to is RunState.FETCHING and able.brings and plan.fetches
        message = "its data is fetched where it runs" if is_later else _MESSAGES[to]
        return Move(to=to, at=at, deadline=_later(at, allowed(to, plan, able)), message=message)

    @staticmethod
    def _waiting(move: Move) -> Move:
        return dataclasses.replace(move, message="waits for its turn")

    async def _follow(self, plan: Plan) -> None:
        """Feed what the engine observes to collection, and move the state with it."""
        shop, run_id = self._shop, self.run.id
        collector = Collector(
            plan.metrics,
            await shop.logs.writer(run_id),
            await shop.series.writer(run_id),
            json_lines_on_stdout=_emits_on_stdout(plan),
            tagged=[unit.name for unit in plan.units if unit.tags_ranks],
        )
        follow = self._follow_one if plan.is_simple else self._follow_all
        await self._finish(plan, collector, await follow(plan, collector))

    async def _follow_one(self, plan: Plan, collector: Collector) -> Verdict:
        """The only unit: nothing to conduct."""
        shop, run_id = self._shop, self.run.id
        if self.run.state is RunState.STARTING:
            await self._engine.start(run_id, plan, plan.deciding)
        ended: UnitEnded | None = None
        pulse = _Pulse(shop.clock.monotonic())
        async for observation in self._engine.observe(run_id, plan.deciding):
            await collector.feed(observation)
            await self._note(observation, plan)
            if isinstance(observation, UnitEnded):
                ended = observation
            if pulse.is_due(shop.clock.monotonic()):
                await self._show(collector, pulse)
        assert ended is not None, "an engine ends its observations with UnitEnded"
        return Verdict(ended=ended)

    async def _follow_all(self, plan: Plan, collector: Collector) -> Verdict:
        """Several units: the conductor says which of them starts when."""
        shop, run_id = self._shop, self.run.id
        pulse = _Pulse(shop.clock.monotonic())

        async def observed(observation: Observation) -> None:
            await collector.feed(observation)
            await self._note(observation, plan)

        async def noted(event: NewEvent) -> None:
            await self._apply(Step(run_id=run_id, notes=[event]))

        async def breathe() -> None:
            if pulse.is_due(shop.clock.monotonic()):
                await self._show(collector, pulse)

        self._conducting = Conducting(self._engine, run_id, plan, shop.clock)
        try:
            events = await shop.store.events(run_id)
            audience = Audience(observed=observed, noted=noted, breathe=breathe)
            return await self._conducting.run(events, audience)
        finally:
            self._conducting = None

    async def _note(self, observation: Observation, plan: Plan) -> None:
        """Say what a unit waits for. The run is RUNNING from when the program began that is
        measured.
        """
        if isinstance(observation, UnitWaiting):
            text = f"{observation.unit}: {observation.message}"
            await self._note_trouble(text, EventKind.NOTE)
        elif (
            isinstance(observation, UnitStarted)
            and observation.unit == plan.deciding
            and self.run.state is RunState.STARTING
        ):
            move = self._move(RunState.RUNNING, observation.at, plan)
            if observation.where:
                move = dataclasses.replace(move, message=f"{move.message} on {observation.where}")
            await self._apply(Step(run_id=self.run.id, moves=[move]))

    async def _show(self, collector: Collector, pulse: _Pulse) -> None:
        """Make what was collected so far visible to readers."""
        await collector.flush()
        if pulse.revision != collector.revision:
            pulse.revision = collector.revision
            await self._apply(Step(run_id=self.run.id, summaries=collector.live()))

    async def _finish(self, plan: Plan, collector: Collector, verdict: Verdict) -> None:
        """Seal what was collected, then store the outcome with the summaries in one step."""
        ended = verdict.ended
        finishing: list[Move] = []
        if self.run.state is RunState.STARTING and ended.cause is EndCause.EXITED:
            # It ran, though a crash of the machine took the record of its start.
            finishing = [self._move(RunState.RUNNING, ended.at, plan)]
        if self.run.state is RunState.RUNNING or finishing:
            finishing.append(self._finishing(ended.at, plan))
        if finishing and collector.output_bytes > LARGE_OUTPUT:
            await self._apply(Step(run_id=self.run.id, moves=finishing))
            finishing = []
        collected = await collector.finish()
        step = Step(
            run_id=self.run.id,
            moves=finishing,
            notes=self._notes(collected, ended),
            outcome=_outcome(verdict, plan, collected),
            summaries=collected.summaries,
        )
        await self._end(step)

    def _finishing(self, ended_at: datetime, plan: Plan) -> Move:
        """Since the program ended, whenever that was, the run is FINISHING; we have from now on."""
        move = self._move(RunState.FINISHING, self._shop.clock.now(), plan)
        began = self.run.started_at or ended_at
        return dataclasses.replace(move, at=max(ended_at, began))

    def _notes(self, collected: Collected, ended: UnitEnded) -> list[NewEvent]:
        messages = list(collected.warnings)
        if ended.left_behind:
            messages.append(
                f"the program left {ended.left_behind} of its processes running; they were stopped"
            )
        now = self._shop.clock.now()
        return [NewEvent(at=now, kind=EventKind.WARNING, message=text) for text in messages]

    async def _end(self, step: Step) -> None:
        assert step.outcome is not None, "a run ends with an outcome"
        now = self._shop.clock.now()
        last = Move(to=step.outcome.state, at=now, deadline=now, message=step.outcome.reason)
        await self._apply(dataclasses.replace(step, moves=[*step.moves, last], release=True))
        if self.run.engine in self._shop.engines:
            # Still dying, or out of reach: the worker's sweep comes back.
            with contextlib.suppress(NotPossible, TemporaryError):
                await self._engine.remove(self.run.id)
                if self._plan is None or bringing.is_needed(self._plan):
                    await self._shop.bringing.remove(self.run.id)

    async def _apply(self, step: Step) -> None:
        self.run = await self._shop.store.apply(self._shop.worker, step)


@dataclasses.dataclass(slots=True)
class _Pulse:
    """When readers were last shown something, and which revision."""

    at: float
    revision: int = 0

    def is_due(self, now: float) -> bool:
        if now - self.at < FLUSH_EVERY:
            return False
        self.at = now
        return True


_TROUBLE = "trouble"


def _last_trouble(events: Sequence[Event]) -> str:
    """What kept the run from going on, since it entered its state; empty if nothing did."""
    for event in reversed(events):
        if event.kind is EventKind.STATE:
            return ""
        if isinstance(text := event.data.get(_TROUBLE), str):
            return text
    return ""


_MESSAGES = {
    RunState.FETCHING: "nothing to fetch",
    RunState.QUEUED: "there is room for it",
    RunState.STARTING: "given to the engine",
    RunState.RUNNING: "the program runs",
    RunState.FINISHING: "the program ended; storing output and metrics",
}


def _outcome(verdict: Verdict, plan: Plan, collected: Collected) -> Outcome:
    if verdict.fault is not None:
        lines = collected.last_lines.get(verdict.fault.unit, ())
        return outcomes.faulty(verdict.fault, verdict.fault_end, lines)
    ended = verdict.ended
    return outcomes.decide(ended, plan, collected.last_lines.get(ended.unit, ()))


def allowed(state: RunState, plan: Plan, able: Capabilities) -> timedelta:
    """How long a run may be in a state."""
    limits = plan.limits
    if state is not RunState.STARTING:
        return {
            RunState.FETCHING: limits.fetching,
            RunState.QUEUED: limits.queued,
            RunState.RUNNING: limits.running + limits.grace + STOP_SLACK,
            RunState.FINISHING: limits.finishing,
        }[state]
    each = limits.starting
    if able.has_machines:  # it finds a machine, and brings everything there; each has its own limit
        each += limits.capacity + limits.pulling
        each += limits.fetching if able.brings and plan.fetches else timedelta()
    return each * plans.depth(plan) + (timedelta() if plan.is_simple else limits.readiness)


def _later(at: datetime, span: timedelta) -> datetime:
    """``at`` plus ``span``, or the end of time where the calendar has no more days."""
    try:
        return at + span
    except OverflowError:
        return datetime.max.replace(tzinfo=at.tzinfo)


def _emits_on_stdout(plan: Plan) -> bool:
    """Whether ``emit()`` was told to print: then JSON lines on stdout are metrics."""
    return any(
        unit.environment.get("BENCHMARK_AI", "fifo").lower() == "stdout" for unit in plan.units
    )
