"""See all units of a run at once, as one stream in the order of time.

Each unit is observed by a task of its own, and asked its probes by another. What they bring is
handed on in small batches, sorted by time: after a crash hours of several units' output are seen
again within seconds, and must not end up in another order than they had.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self

from anubis.domain.observation import Condition, Observation, UnitEnded
from anubis.domain.plan import Plan
from anubis.domain.run import RunId
from anubis.ports.engine import Engine

Seen = Observation | Condition

DEPTH = 256
"""Observations of one unit that wait to be taken; a piece of output has up to a megabyte, most have
some hundred bytes."""

GATHER_SECONDS = 0.02
"""How long the first news waits for others, so that what happened at the same time is sorted."""


class _Source:
    """What one task brings."""

    def __init__(self) -> None:
        self.waiting: asyncio.Queue[Seen] = asyncio.Queue(DEPTH)
        self.task: asyncio.Task[None] | None = None
        self.error: Exception | None = None


class Ensemble:
    """The units of one run. Enter it; leaving it stops looking, and changes nothing for the run."""

    def __init__(self, engine: Engine, run_id: RunId, plan: Plan) -> None:
        self._engine = engine
        self._run_id = run_id
        self._plan = plan
        self._sources: dict[str, _Source] = {}
        self._news = asyncio.Event()
        self._awaited = {name for unit in plan.units for name in unit.after}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for source in self._sources.values():
            await _end(source)

    def follow(self, name: str) -> None:
        """Observe a unit that was started, and ask its probes if anybody wants to know."""
        if name in self._sources:
            return
        self._begin(name, self._engine.observe(self._run_id, name))
        unit = self._plan.unit(name)
        if name in self._awaited or unit.liveness is not None:
            self._begin(f"{name} probe", self._engine.probe(self._run_id, self._plan, name))

    async def news(self, seconds: float) -> Sequence[Seen]:
        """What was seen since the last time, sorted; nothing, if nothing was for so long.

        Raises what an observer failed with, once all that it saw before was taken.
        """
        if not self._has_any():
            self._raise_failures()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._news.wait()
            await asyncio.sleep(GATHER_SECONDS)
        self._news.clear()
        return self._taken()

    def _has_any(self) -> bool:
        return any(not source.waiting.empty() for source in self._sources.values())

    def _taken(self) -> list[Seen]:
        """All that waits, but nothing later than what a unit with more to come has shown."""
        taken = [(name, _timed(_drained(source))) for name, source in self._sources.items()]
        until = min((seen[-1][0] for _, seen in taken if len(seen) >= DEPTH), default=None)
        ready: list[tuple[datetime, Seen]] = []
        for name, seen in taken:
            on_time = [one for one in seen if until is None or one[0] <= until]
            ready += on_time
            self._put_back(name, [one for _, one in seen[len(on_time) :]])
        return [one for _, one in sorted(ready, key=lambda one: one[0])]

    def _put_back(self, name: str, seen: Sequence[Seen]) -> None:
        """Return what is too early, before its task can add to it."""
        for one in seen:
            self._sources[name].waiting.put_nowait(one)

    def _begin(self, name: str, seen: AsyncIterator[Seen]) -> None:
        source = self._sources[name] = _Source()

        async def bring() -> None:
            try:
                async for one in seen:
                    await source.waiting.put(one)
                    self._news.set()
                    if isinstance(one, UnitEnded):
                        await self._end_probe(one.unit)
            except Exception as error:  # noqa: BLE001 - raised again for whoever asks for news
                source.error = error
                self._news.set()
            finally:
                if isinstance(seen, AsyncGenerator):  # now, not when memory is cleaned up
                    await seen.aclose()

        source.task = asyncio.create_task(bring(), name=f"{name} of {self._run_id}")

    async def _end_probe(self, unit: str) -> None:
        if source := self._sources.get(f"{unit} probe"):
            await _end(source)

    def _raise_failures(self) -> None:
        for source in self._sources.values():
            if source.error is not None:
                raise source.error


def _timed(seen: Sequence[Seen]) -> list[tuple[datetime, Seen]]:
    """With the time at which each has its place. What one source tells keeps its order, also when
    the machine's clock is set back meanwhile.
    """
    return list(zip(itertools.accumulate((one.at for one in seen), max), seen, strict=True))


def _drained(source: _Source) -> list[Seen]:
    return [source.waiting.get_nowait() for _ in range(source.waiting.qsize())]


async def _end(source: _Source) -> None:
    if source.task is not None and not source.task.done():
        source.task.cancel()
        await asyncio.wait([source.task])
