"""Follow one run: what is new, as soon as it is stored, until it has ended.

The store is asked whether anything changed at all (a few microseconds) and only then read, so a
watcher costs the measured program next to nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from anubis.domain.event import Event
from anubis.domain.metric import Summary
from anubis.domain.run import Run, RunId, RunState
from anubis.ports.clock import Clock
from anubis.ports.run_store import RunStore

QUICK, CALM = 0.005, 0.1
"""Seconds between looks: quick in the first second, when short runs end; then calm."""

QUICK_LOOKS = 200
CARE_EVERY = 1.0
"""Seconds between calls of ``care``, which revives a runtime that was killed."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The run as it is, and what is new since the snapshot before."""

    run: Run
    events: Sequence[Event]
    summaries: Sequence[Summary]
    waiting_for: str = ""  #: why a run in the queue has not started


async def watch(
    run_id: RunId,
    store: RunStore,
    clock: Clock,
    *,
    care: Callable[[], Awaitable[None]],
    why: Callable[[Run], Awaitable[str]],
) -> AsyncGenerator[Snapshot, None]:
    """Yield at once, then at every change; end after the snapshot of the terminal state.

    ``why`` says why a run waits; it is asked once a run is in the queue.
    """
    token, version, last_event, looks = None, 0, 0, 0
    cared_at = clock.monotonic()
    while True:
        if (now_token := store.change_token()) != token:
            token = now_token
            run = await store.get(run_id)
            if run.version != version:
                version = run.version
                events = await store.events(run_id, after=last_event)
                last_event = events[-1].number if events else last_event
                summaries = await store.summaries(run_id)
                waits = await why(run) if run.state is RunState.QUEUED else ""
                yield Snapshot(run=run, events=events, summaries=summaries, waiting_for=waits)
            if run.state.is_terminal:
                return
        looks += 1
        await clock.sleep(QUICK if looks < QUICK_LOOKS else CALM)
        if clock.monotonic() - cared_at >= CARE_EVERY:
            cared_at = clock.monotonic()
            await care()
