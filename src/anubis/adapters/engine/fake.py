"""An engine that runs nothing: programs are scripts, and every run goes as its script says.

Product code, not a mock: it keeps the whole promise of the port (idempotent starts, several
observers, stopping, forgetting), so that stages are tested against behaviour, not against calls.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta

from anubis.domain.document import Fingerprint
from anubis.domain.errors import EngineUnavailable, NotPossible
from anubis.domain.observation import (
    EmittedChunk,
    EndCause,
    Observation,
    OutputChunk,
    ResourceReading,
    Stream,
    UnitEnded,
    UnitStarted,
)
from anubis.domain.plan import Plan
from anubis.domain.run import RunId
from anubis.ports.engine import Capabilities

SIGTERM, SIGKILL = 15, 9


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """What a program does, in this order, when the fake engine "runs" it."""

    output: tuple[tuple[Stream, bytes], ...] = ()
    emitted: tuple[bytes, ...] = ()
    readings: tuple[ResourceReading, ...] = ()
    endless: bool = False  #: goes on after its output until it is stopped
    ignores_sigterm: bool = False
    exit_code: int | None = 0
    signal: int | None = None
    cause: EndCause = EndCause.EXITED
    message: str = ""


@dataclasses.dataclass(kw_only=True, slots=True)
class _FakeRun:
    unit: str
    script: Script
    seen: list[Observation] = dataclasses.field(default_factory=list)
    news: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        return bool(self.seen) and isinstance(self.seen[-1], UnitEnded)

    def add(self, *observations: Observation) -> None:
        self.seen.extend(observations)
        self.news.set()
        self.news = asyncio.Event()


def _utc_now() -> datetime:
    return datetime.now(UTC)


class FakeEngine:
    """Play scripts. ``script`` may look at the plan to decide what its program does."""

    def __init__(
        self,
        script: Script | Callable[[Plan], Script] = Script(),  # noqa: B008 (a frozen value)
        *,
        now: Callable[[], datetime] = _utc_now,
        strategies: frozenset[str] = frozenset({"single_node"}),
    ) -> None:
        self._script = script
        self._now = now
        self._runs: dict[RunId, _FakeRun] = {}
        self.capabilities = Capabilities(
            name="fake", strategies=strategies, needs_image=False, honours_affinity=True
        )
        self.started: list[RunId] = []  #: one entry per program that really began
        self.unavailable = False  #: set it to make ``start`` fail as a dead engine does

    async def fingerprint(self, plan: Plan) -> Fingerprint:
        """The same small environment every time."""
        return Fingerprint(machine='{"engine": "fake"}', moment=f'{{"units": {len(plan.units)}}}')

    async def start(self, run_id: RunId, plan: Plan) -> None:
        """Play the script up to its end, or up to where it waits to be stopped."""
        if self.unavailable:
            raise EngineUnavailable("the fake engine was told to be unavailable")
        if run_id in self._runs:
            return
        script = self._script(plan) if callable(self._script) else self._script
        run = self._runs[run_id] = _FakeRun(unit=plan.deciding, script=script)
        self.started.append(run_id)
        run.add(*self._opening(run))
        if not script.endless:
            run.add(self._ended(run, cause=script.cause))

    def _opening(self, run: _FakeRun) -> list[Observation]:
        script, unit, at = run.script, run.unit, self._now()
        if script.cause is EndCause.NOT_STARTED:
            return []
        return [
            UnitStarted(unit=unit, at=at),
            *(OutputChunk(unit=unit, at=at, stream=s, data=d) for s, d in script.output),
            *(EmittedChunk(unit=unit, at=at, data=data) for data in script.emitted),
            *script.readings,
        ]

    def _ended(self, run: _FakeRun, *, cause: EndCause) -> UnitEnded:
        script = run.script
        has_exit = cause not in {EndCause.NOT_STARTED, EndCause.LOST}
        return UnitEnded(
            unit=run.unit,
            at=self._now(),
            cause=cause,
            exit_code=script.exit_code if has_exit and script.signal is None else None,
            signal=script.signal if has_exit else None,
            message=script.message,
        )

    async def observe(self, run_id: RunId) -> AsyncIterator[Observation]:
        """Replay what was seen, then follow."""
        run = self._runs.get(run_id)
        if run is None:
            message = "the run was never started here"
            at = self._now()
            yield UnitEnded(unit="benchmark", at=at, cause=EndCause.LOST, message=message)
            return
        position = 0
        while True:
            news = run.news
            while position < len(run.seen):
                yield run.seen[position]
                position += 1
            if run.is_over:
                return
            await news.wait()

    async def stop(self, run_id: RunId, *, grace: timedelta, cause: EndCause) -> None:
        """End an endless script as the signal would: at once, ``grace`` takes no real time."""
        run = self._runs.get(run_id)
        if run is None or run.is_over:
            return
        kills = run.script.ignores_sigterm or not grace
        ended = self._ended(run, cause=cause)
        run.add(dataclasses.replace(ended, exit_code=None, signal=SIGKILL if kills else SIGTERM))

    def lose(self, run_id: RunId, message: str = "the fake engine lost it") -> None:
        """End a run as if all its processes had been killed."""
        run = self._runs[run_id]
        if not run.is_over:
            ended = self._ended(run, cause=EndCause.LOST)
            run.add(dataclasses.replace(ended, message=message))

    def say(self, run_id: RunId, data: bytes, stream: Stream = Stream.STDOUT) -> None:
        """Let an endless script write something now."""
        run = self._runs[run_id]
        run.add(OutputChunk(unit=run.unit, at=self._now(), stream=stream, data=data))

    def finish(self, run_id: RunId, exit_code: int = 0) -> None:
        """Let an endless script end by itself now."""
        run = self._runs[run_id]
        ended = self._ended(run, cause=EndCause.EXITED)
        run.add(dataclasses.replace(ended, exit_code=exit_code, signal=None))

    async def remove(self, run_id: RunId) -> None:
        """Forget an ended run."""
        run = self._runs.get(run_id)
        if run is None:
            return
        if not run.is_over:
            raise NotPossible(f"run {run_id} still goes on; stop it first")
        del self._runs[run_id]

    async def leftovers(self) -> Sequence[RunId]:
        """Runs not yet forgotten, oldest first."""
        return tuple(self._runs)
