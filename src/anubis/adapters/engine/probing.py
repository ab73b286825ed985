"""Ask units whether they are ready and alive, with the meaning Kubernetes gives to every field.

Shared by the engines that must ask themselves. What the answers mean is decided by two small state
machines that know neither time nor network; the rest is one request per period. Redirects are not
followed, certificates are not checked, and of an answer only the beginning is read: a probe shall
disturb the measured server as little as it can.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime, timedelta

from anubis.adapters.engine import asking
from anubis.domain.observation import Condition, UnitReady, UnitSilent, UnitUnready
from anubis.domain.plan import Probe, Unit

Address = Callable[[int], tuple[str, int]]
"""Where a unit is reached for the port it declares: a host and a port."""


class Readiness:
    """Whether a unit counts as ready. Not, until it has answered as often as it must."""

    def __init__(self, unit: str, probe: Probe) -> None:
        self._unit = unit
        self._probe = probe
        self._is_ready = False
        self._successes = 0
        self._failures = 0
        self._told = ""  #: the failure that was told last, since it was last ready

    def note(self, failure: str, at: datetime) -> Condition | None:
        """What changed with this answer; ``failure`` is empty if it was a good one."""
        if failure:
            self._successes, self._failures = 0, self._failures + 1
            return self._after_failure(failure, at)
        self._successes, self._failures = self._successes + 1, 0
        if self._is_ready or self._successes < self._probe.success_threshold:
            return None
        self._is_ready, self._told = True, ""
        return UnitReady(unit=self._unit, at=at)

    def _after_failure(self, failure: str, at: datetime) -> Condition | None:
        if self._is_ready and self._failures < self._probe.failure_threshold:
            return None
        self._is_ready = False
        if failure == self._told:
            return None
        self._told = failure
        return UnitUnready(unit=self._unit, at=at, message=failure)


class Liveness:
    """Whether a unit has failed as often in a row as it may."""

    def __init__(self, unit: str, probe: Probe) -> None:
        self._unit = unit
        self._probe = probe
        self._failures = 0

    def note(self, failure: str, at: datetime) -> Condition | None:
        """The end of patience, if this answer was it; ``failure`` is empty if it was a good one."""
        self._failures = self._failures + 1 if failure else 0
        if self._failures < self._probe.failure_threshold:
            return None
        return UnitSilent(unit=self._unit, at=at, message=failure)


async def conditions(unit: Unit, address: Address) -> AsyncGenerator[Condition, None]:
    """How a unit answers its probes, from now on, whenever that changes; see the engine's port."""
    sources = [_readiness(unit, address)]
    if unit.liveness is not None:
        sources.append(_told(Liveness(unit.name, unit.liveness), unit.liveness, address))
    async with contextlib.aclosing(_merged(*sources)) as merged:
        async for condition in merged:
            yield condition
            if isinstance(condition, UnitSilent):
                return


async def _readiness(unit: Unit, address: Address) -> AsyncGenerator[Condition, None]:
    if unit.readiness is None:
        yield UnitReady(unit=unit.name, at=_now())
        return
    told = _told(Readiness(unit.name, unit.readiness), unit.readiness, address)
    async with contextlib.aclosing(told):
        async for condition in told:
            yield condition


async def _told(
    tally: Readiness | Liveness, probe: Probe, address: Address
) -> AsyncGenerator[Condition, None]:
    """Ask once per period, for ever, and tell what the tally makes of the answers."""
    clock = asyncio.get_running_loop()
    due = clock.time() + probe.initial_delay.total_seconds()
    while True:
        await asyncio.sleep(due - clock.time())
        condition = tally.note(await failure(probe, address), _now())
        if condition is not None:
            yield condition
        # A slow answer does not move those that follow, as long as it leaves them any room.
        due = max(due + probe.period.total_seconds(), clock.time())


async def failure(probe: Probe, address: Address) -> str:
    """Ask once: empty if the unit answered well, else who was asked, and what was wrong."""
    host, port = address(probe.port)
    try:
        async with asyncio.timeout(probe.timeout.total_seconds()):
            wrong = await asking.ask(probe, host, port)
    except TimeoutError:
        wrong = f"no answer within {_seconds(probe.timeout)}"
    return wrong and f"{asking.target(probe, host, port)}: {wrong}"


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():g} s"


def _now() -> datetime:
    return datetime.now(UTC)


def _next(source: AsyncGenerator[Condition, None]) -> asyncio.Task[Condition]:
    return asyncio.create_task(_first(source), name="probe")


async def _first(source: AsyncGenerator[Condition, None]) -> Condition:
    return await anext(source)


async def _merged(*sources: AsyncGenerator[Condition, None]) -> AsyncGenerator[Condition, None]:
    """What several sources tell, as it comes. Does not end: whoever asks stops asking."""
    pending = {_next(source): source for source in sources}
    try:
        while True:
            done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                source = pending.pop(task)
                with contextlib.suppress(StopAsyncIteration):
                    yield task.result()
                    pending[_next(source)] = source
            if not pending:
                await asyncio.Event().wait()
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        for source in sources:
            await source.aclose()
