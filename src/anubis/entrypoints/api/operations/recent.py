"""Which runs have something to show to Prometheus: those under way, and those that ended lately."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence

from anubis.domain.action import ActionId
from anubis.domain.errors import RunNotFound
from anubis.domain.event import EventKind
from anubis.domain.run import TERMINAL, RunId
from anubis.ports.action_store import ActionStore
from anubis.ports.clock import Clock
from anubis.ports.run_store import RunStore
from anubis.stages.presentation.exposition import Measured

KEPT = 60.0
"""Seconds that a run is shown after its end: four scrapes of the usual kind, as it always was."""

MOST_RUNS = 1_000
BACK = 5_000
"""Events that are looked at when nobody has asked for long."""

PAGE = 1_000


_ENDS = frozenset(state.value for state in TERMINAL)


@dataclasses.dataclass(slots=True)
class _Seen:
    client_id: str
    ended_at: float | None = None  #: by the monotonic clock


class Recent:
    """Follows the feed of events between two questions, so that short runs are seen too."""

    def __init__(self, store: RunStore, actions: ActionStore, clock: Clock) -> None:
        self._store = store
        self._actions = actions
        self._clock = clock
        self._runs: dict[RunId, _Seen] = {}
        self._sequence: int | None = None

    async def measured(self) -> Sequence[Measured]:
        """What runs have measured by now, oldest first."""
        await self._follow()
        self._forget()
        found: list[Measured] = []
        # Of those that are seen now: somebody else who asks meanwhile may forget some of them.
        for run_id, seen in sorted(self._runs.items(), key=lambda item: item[0]):
            await asyncio.sleep(0)  # reading a thousand runs must not hold up everybody else
            try:
                found.append(await self._measured(run_id, seen))
            except RunNotFound:  # purged
                self._runs.pop(run_id, None)
        return found

    async def _measured(self, run_id: RunId, seen: _Seen) -> Measured:
        run = await self._store.get(run_id)
        summaries = await self._store.summaries(run_id)
        return Measured(run=run, client_id=seen.client_id, summaries=summaries)

    async def _follow(self) -> None:
        """Take over which runs are under way, and which ended since the last question."""
        last = await self._store.last_sequence()
        after = max(last - BACK, self._sequence or 0)
        while events := await self._store.feed(after=after, limit=PAGE):
            after = events[-1].sequence
            for event in events:
                if event.kind is EventKind.STATE and event.data.get("to") in _ENDS:
                    age = (self._clock.now() - event.at).total_seconds()
                    if age < KEPT:
                        await self._see(event.run_id, self._clock.monotonic() - max(0.0, age))
        self._sequence = max(after, last)
        for run in await self._store.active(MOST_RUNS):
            if run.started_at is not None:
                await self._see(run.id, None)

    async def _see(self, run_id: RunId, ended_at: float | None) -> None:
        seen = self._runs.get(run_id)
        if seen is None:
            if len(self._runs) >= MOST_RUNS:
                return
            seen = self._runs[run_id] = _Seen(client_id=await self._client_of(run_id))
        seen.ended_at = ended_at

    async def _client_of(self, run_id: RunId) -> str:
        action = await self._actions.get(ActionId(run_id))
        if action is not None:
            return action.client_id
        try:
            return (await self._store.get(run_id)).submitter
        except RunNotFound:
            return ""

    def _forget(self) -> None:
        horizon = self._clock.monotonic() - KEPT
        gone = [
            run_id
            for run_id, seen in self._runs.items()
            if seen.ended_at is not None and seen.ended_at < horizon
        ]
        for run_id in gone:
            del self._runs[run_id]
