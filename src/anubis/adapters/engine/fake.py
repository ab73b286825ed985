"""An engine that runs nothing: programs are scripts, and every run goes as its script says.

Product code, not a mock: it keeps the whole promise of the port (idempotent starts, several
observers, stopping, forgetting), so that stages are tested against behaviour, not against calls.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta

from anubis.domain.dataset import Report
from anubis.domain.document import Fingerprint
from anubis.domain.errors import EngineUnavailable, NotPossible
from anubis.domain.observation import (
    Condition,
    EmittedChunk,
    EndCause,
    Observation,
    OutputChunk,
    ResourceReading,
    Stream,
    UnitEnded,
    UnitReady,
    UnitSilent,
    UnitStarted,
    UnitUnready,
    UnitWaiting,
)
from anubis.domain.plan import SOLE, Plan
from anubis.domain.run import RunId
from anubis.ports.engine import Capabilities

SIGTERM, SIGKILL = 15, 9


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """What a program does, in this order, when the fake engine "runs" it."""

    waits: tuple[str, ...] = ()  #: what it waits for before it begins
    never_begins: bool = False  #: waits until it is stopped
    output: tuple[tuple[Stream, bytes], ...] = ()
    emitted: tuple[bytes, ...] = ()
    readings: tuple[ResourceReading, ...] = ()
    endless: bool = False  #: goes on after its output until it is stopped
    ignores_sigterm: bool = False
    exit_code: int | None = 0
    signal: int | None = None
    cause: EndCause = EndCause.EXITED
    message: str = ""
    unready: str = ""  #: why it does not answer its readiness probe; empty: it does
    silent: str = ""  #: why it does not answer its liveness probe, once it is ready; empty: it does


@dataclasses.dataclass(kw_only=True, slots=True)
class _FakeUnit:
    name: str
    script: Script
    seen: list[Observation] = dataclasses.field(default_factory=list)
    news: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        return bool(self.seen) and isinstance(self.seen[-1], UnitEnded)

    def add(self, *observations: Observation) -> None:
        self.seen.extend(observations)
        self.tell()

    def tell(self) -> None:
        self.news.set()
        self.news = asyncio.Event()


_Units = dict[str, _FakeUnit]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class FakeEngine:
    """Play scripts. ``script`` may look at plan and unit to decide what the program does."""

    def __init__(
        self,
        script: Script | Callable[[Plan, str], Script] = Script(),  # noqa: B008 (a frozen value)
        *,
        now: Callable[[], datetime] = _utc_now,
        strategies: frozenset[str] = frozenset({"single_node"}),
    ) -> None:
        self._script = script
        self._now = now
        self._runs: dict[RunId, _Units] = {}
        self.capabilities = Capabilities(
            name="fake", strategies=strategies, needs_image=False, honours_affinity=True
        )
        self.begun: list[RunId] = []  #: one entry per program that really began
        self.unavailable = False  #: set it to make ``start`` fail as a dead engine does

    async def prepare(self, plan: Plan, report: Report) -> None:
        """There is nothing to bring."""

    async def fingerprint(self, plan: Plan) -> Fingerprint:
        """The same small environment every time."""
        return Fingerprint(machine='{"engine": "fake"}', moment=f'{{"units": {len(plan.units)}}}')

    async def start(self, run_id: RunId, plan: Plan, unit: str = SOLE) -> None:
        """Play the script up to its end, or up to where it waits to be stopped."""
        if self.unavailable:
            raise EngineUnavailable("the fake engine was told to be unavailable")
        units = self._runs.setdefault(run_id, {})
        if unit in units:
            return
        script = self._script(plan, unit) if callable(self._script) else self._script
        fake = units[unit] = _FakeUnit(name=unit, script=script)
        self.begun.append(run_id)
        fake.add(*self._opening(fake))
        if not (script.endless or script.never_begins):
            fake.add(self._ended(fake, cause=script.cause))

    async def started(self, run_id: RunId) -> frozenset[str]:
        """What was played."""
        return frozenset(self._runs.get(run_id, {}))

    def _opening(self, fake: _FakeUnit) -> list[Observation]:
        script, unit, at = fake.script, fake.name, self._now()
        waits = [UnitWaiting(unit=unit, at=at, message=message) for message in script.waits]
        if script.cause is EndCause.NOT_STARTED or script.never_begins:
            return [*waits]
        return [
            *waits,
            UnitStarted(unit=unit, at=at),
            *(OutputChunk(unit=unit, at=at, stream=s, data=d) for s, d in script.output),
            *(EmittedChunk(unit=unit, at=at, data=data) for data in script.emitted),
            *script.readings,
        ]

    def _ended(self, fake: _FakeUnit, *, cause: EndCause) -> UnitEnded:
        script = fake.script
        has_exit = cause not in {EndCause.NOT_STARTED, EndCause.LOST}
        return UnitEnded(
            unit=fake.name,
            at=self._now(),
            cause=cause,
            exit_code=script.exit_code if has_exit and script.signal is None else None,
            signal=script.signal if has_exit else None,
            message=script.message,
        )

    async def observe(self, run_id: RunId, unit: str = SOLE) -> AsyncIterator[Observation]:
        """Replay what was seen, then follow."""
        fake = self._runs.get(run_id, {}).get(unit)
        if fake is None:
            message = "the run was never started here"
            yield UnitEnded(unit=unit, at=self._now(), cause=EndCause.LOST, message=message)
            return
        position = 0
        while True:
            news = fake.news
            while position < len(fake.seen):
                yield fake.seen[position]
                position += 1
            if fake.is_over:
                return
            await news.wait()

    async def probe(self, run_id: RunId, plan: Plan, unit: str) -> AsyncIterator[Condition]:  # noqa: ARG002
        """As its script says, and as ``become`` changes it."""
        fake = self._runs[run_id][unit]
        said: tuple[str, str] | None = None
        while True:
            news, says = fake.news, (fake.script.unready, fake.script.silent)
            if says != said and fake.script.unready:
                yield UnitUnready(unit=unit, at=self._now(), message=fake.script.unready)
            elif says != said:
                yield UnitReady(unit=unit, at=self._now())
            if fake.script.silent and not fake.script.unready:
                yield UnitSilent(unit=unit, at=self._now(), message=fake.script.silent)
                return
            said = says
            await news.wait()

    def become(self, run_id: RunId, unit: str, *, unready: str = "", silent: str = "") -> None:
        """Let a unit answer its probes otherwise from now on."""
        fake = self._runs[run_id][unit]
        fake.script = dataclasses.replace(fake.script, unready=unready, silent=silent)
        fake.tell()

    async def stop(
        self,
        run_id: RunId,
        *,
        grace: timedelta,
        cause: EndCause,
        units: Collection[str] | None = None,
    ) -> None:
        """End endless scripts as the signal would: at once, ``grace`` takes no real time."""
        for fake in self._runs.get(run_id, {}).values():
            if not fake.is_over and (units is None or fake.name in units):
                kills = fake.script.ignores_sigterm or not grace
                ended = self._ended(fake, cause=cause)
                number = SIGKILL if kills else SIGTERM
                fake.add(dataclasses.replace(ended, exit_code=None, signal=number))

    def lose(
        self, run_id: RunId, message: str = "the fake engine lost it", *, unit: str = SOLE
    ) -> None:
        """End a unit as if all its processes had been killed."""
        fake = self._runs[run_id][unit]
        if not fake.is_over:
            ended = self._ended(fake, cause=EndCause.LOST)
            fake.add(dataclasses.replace(ended, message=message))

    def say(
        self, run_id: RunId, data: bytes, stream: Stream = Stream.STDOUT, *, unit: str = SOLE
    ) -> None:
        """Let an endless script write something now."""
        chunk = OutputChunk(unit=unit, at=self._now(), stream=stream, data=data)
        self._runs[run_id][unit].add(chunk)

    def finish(self, run_id: RunId, exit_code: int = 0, *, unit: str = SOLE) -> None:
        """Let an endless script end by itself now."""
        fake = self._runs[run_id][unit]
        ended = self._ended(fake, cause=EndCause.EXITED)
        fake.add(dataclasses.replace(ended, exit_code=exit_code, signal=None))

    async def remove(self, run_id: RunId) -> None:
        """Forget an ended run."""
        units = self._runs.get(run_id, {})
        if any(not fake.is_over for fake in units.values()):
            raise NotPossible(f"run {run_id} still goes on; stop it first")
        self._runs.pop(run_id, None)

    async def leftovers(self) -> Sequence[RunId]:
        """Runs not yet forgotten, oldest first."""
        return tuple(self._runs)
